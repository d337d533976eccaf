"""The log that agents and workers talk over, and what is built on it.

A topic has partitions, a partition has records in order; a group of consumers shares a topic's partitions, and its
positions are kept in PostgreSQL. `Log` is what everyone sees; PostgreSQL holds it alone, or with Kafka behind it.
`Commands` asks workers for work and waits for the answer; what could not be processed is a dead letter.
"""

from holdfast.bus.commands import Command, Commands
from holdfast.bus.completions import Completion
from holdfast.bus.dead_letters import DeadLetter, DeadLetters
from holdfast.bus.log import Log
from holdfast.bus.postgres_log import PostgresLog
from holdfast.bus.records import Record
from holdfast.bus.skills import CurrentCommand, Skill, current_command
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
    "Lag",
    "Log",
    "PostgresLog",
    "Record",
    "Skill",
    "Subscription",
    "Topic",
    "Worker",
    "current_command",
]
