"""The command line: `holdfast COMMAND`.

`main` finds the command and turns errors into messages and exit codes; each command or group of commands is a module of
its own, loaded when it is called. Commands about what the engine holds speak to its API (`api`), whether a server runs
or not.
"""
