"""The log through which agents and workers communicate, and the commands that are built on it.

A topic has partitions, and a partition has ordered records. The members of a consumer group share the partitions of a
topic. PostgreSQL stores the group's positions. `Log` is the protocol: PostgreSQL implements it alone or with Kafka
behind it. `Commands` calls handlers in workers and waits for the results. A record or command that fails too often
becomes a dead letter.
"""

from holdfast.bus.commands import Command, Commands
from holdfast.bus.completions import Completion
from holdfast.bus.dead_letters import DeadLetter, DeadLetters
from holdfast.bus.handlers import CurrentCommand, Handler, current_command
from holdfast.bus.log import Log
from holdfast.bus.postgres_log import PostgresLog
from holdfast.bus.records import Record
from holdfast.bus.subscription import Subscription
from holdfast.bus.topics import Lag, Topic
from holdfast.bus.workers import Worker

__all__ = [
    "Command",
    "Commands",
    "Completion",
    "CurrentCommand",
    "DeadLetter",
    "DeadLetters",
    "Handler",
    "Lag",
    "Log",
    "PostgresLog",
    "Record",
    "Subscription",
    "Topic",
    "Worker",
    "current_command",
]
