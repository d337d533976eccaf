"""The command line: `holdfast COMMAND`.

`main` finds the command and turns errors into messages and exit codes. Each command or command group is a module that
is loaded when it is called. Commands that read or change data call the HTTP API (`api`), whether a server runs or not.
"""
