"""Runs tools: functions, HTTP back ends, and tools that workers of the log carry out.

`Executor` runs a tool with the runner of its kind, within limits. `Executions` calls a tool outside of a turn and
records the call. `Secrets` stores the credentials for back ends. `egress` makes the outgoing connections.
"""
