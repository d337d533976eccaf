"""Agents that are defined, and what the topics of their conversations were told."""

from typing import NamedTuple
from uuid import UUID

from holdfast.bus import Record
from holdfast.bus.messages import ConversationMessage, message_of, sequence_of
from holdfast.core.ids import uuid7
from holdfast.engine import Engine

DEFINE = "insert into agent_definition_t (host_id, agent_def_id, name, kind, active) values ($1, $2, $3, $4, $5)"


class Told(NamedTuple):
    """A record of a conversation: the revision it tells of, and what it says."""

    sequence: int | None
    message: ConversationMessage
    record: Record

    @property
    def brief(self) -> tuple[int | None, str, str, UUID]:
        """Which revision, what happened, who did it, to which node."""
        return self.sequence, self.message.action, self.message.agent_id, self.message.node_id


async def define(engine: Engine, name: str, *, kind: str = "llm", active: bool = True, topic: bool = True) -> str:
    """Define an agent; its topic, which is made."""
    await engine.database.run(DEFINE, uuid7(), name, kind, active)
    if topic:
        await engine.log.create(f"{kind}-{name}", partitions=4)
    return f"{kind}-{name}"


async def told(engine: Engine, topic: str, conversation: UUID | None = None) -> list[Told]:
    """What a topic was told, of one conversation or of all, in the order of each partition."""
    records = [record async for record in engine.log.read(topic)]
    wanted = [record for record in records if conversation is None or record.key == str(conversation)]
    return [Told(sequence_of(record), message_of(record), record) for record in wanted]
