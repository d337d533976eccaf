"""How tools are run: functions, HTTP back ends, workers of the log.

`Executor` runs a tool by the runner of its kind, within limits; `Executions` calls one outside of a turn and writes it
down; `Secrets` keeps what back ends are shown; `egress` is the way out.
"""
