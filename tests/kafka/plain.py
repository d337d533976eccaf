"""A Kafka client that knows nothing of us: what a program in any language does at the broker."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

PATIENCE = 60.0

Headers = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class Seen:
    """A record as a plain client sees it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]

    @property
    def log_offset(self) -> int | None:
        """The offset in our log, where it says so."""
        return next((int(value) for name, value in self.headers if name == "holdfast-offset"), None)


class Plain:
    """Reads, writes and administers topics; their names are given without the installation's prefix."""

    def __init__(self, address: str, prefix: str) -> None:
        self._prefix = prefix
        self._client: dict[str, Any] = {"bootstrap.servers": address, "log_level": 0}
        self._admin: Any = AdminClient(self._client)  # its futures say no type
        self._producer = Producer(self._client)

    def name(self, topic: str) -> str:
        """What a topic, or a group, is called there."""
        return f"{self._prefix}{topic}"

    async def produce(
        self, topic: str, value: bytes | None, *, key: bytes | None = None, headers: Headers = (), partition: int = -1
    ) -> int:
        """Produce a record, and wait until it is acknowledged; its offset there."""
        told: list[tuple[Any, Message]] = []

        def send() -> int:
            self._producer.produce(
                self.name(topic),
                value,
                key,
                partition,
                headers=list(headers),
                on_delivery=lambda error, message: told.append((error, message)),
            )
            self._producer.flush(PATIENCE)
            ((error, message),) = told
            assert error is None, error
            offset = message.offset()
            assert offset is not None
            return offset

        return await asyncio.to_thread(send)

    async def produce_many(self, topic: str, values: Sequence[bytes]) -> None:
        """Produce records, and wait until all are acknowledged."""

        def send() -> None:
            for value in values:
                self._producer.produce(self.name(topic), value, partition=0)
            assert self._producer.flush(PATIENCE) == 0

        await asyncio.to_thread(send)

    async def copy(self, seen: Seen, topic: str, **changed: Any) -> int:
        """Produce a record that somebody has read once more, headers and all."""
        given: dict[str, Any] = {"value": seen.value, "key": seen.key, "headers": seen.headers}
        given |= {"partition": seen.partition, **changed}
        return await self.produce(topic, **given)

    async def read(self, topic: str, count: int, *, partitions: int = 1) -> list[Seen]:
        """The first records of a topic, so many, as soon as they are there."""

        def consume() -> list[Seen]:
            reader = Consumer({**self._client, "group.id": "none", "auto.offset.reset": "earliest"})
            places = [TopicPartition(self.name(topic), number, OFFSET_BEGINNING) for number in range(partitions)]
            reader.assign(places)
            messages = reader.consume(count, PATIENCE)
            reader.close()
            return [_seen(message) for message in messages]

        return await asyncio.to_thread(consume)

    async def end(self, topic: str, partition: int = 0) -> int:
        """How many records a partition has had."""

        def ask() -> int:
            reader = Consumer({**self._client, "group.id": "none"})
            _, high = reader.get_watermark_offsets(TopicPartition(self.name(topic), partition), timeout=PATIENCE)
            reader.close()
            return high

        return await asyncio.to_thread(ask)

    async def committed(self, group: str, topic: str, partition: int = 0) -> int:
        """How far a group is, as Kafka's own tools see it."""

        def ask() -> int:
            reader = Consumer({**self._client, "group.id": self.name(group)})
            (found,) = reader.committed([TopicPartition(self.name(topic), partition)], timeout=PATIENCE)
            reader.close()
            return found.offset

        return await asyncio.to_thread(ask)

    async def commit(self, group: str, topic: str, offset: int) -> None:
        """Move a group, as Kafka's own tools do."""

        def move() -> None:
            reader = Consumer({**self._client, "group.id": self.name(group), "enable.auto.commit": False})
            reader.commit(offsets=[TopicPartition(self.name(topic), 0, offset)], asynchronous=False)
            reader.close()

        await asyncio.to_thread(move)

    async def topics(self) -> dict[str, int]:
        """The topics of this installation with their partitions, as they are called there."""

        def ask() -> dict[str, int]:
            found = self._admin.list_topics(timeout=PATIENCE).topics
            return {name: len(topic.partitions) for name, topic in found.items() if name.startswith(self._prefix)}

        return await asyncio.to_thread(ask)

    async def create(self, topic: str, partitions: int = 1) -> None:
        """Make a topic."""
        await self._administer(lambda: self._admin.create_topics([NewTopic(self.name(topic), partitions, 1)]))

    async def widen(self, topic: str, partitions: int) -> None:
        """Add partitions."""
        await self._administer(lambda: self._admin.create_partitions([NewPartitions(self.name(topic), partitions)]))

    async def remove(self, topic: str) -> None:
        """Remove a topic."""
        await self._administer(lambda: self._admin.delete_topics([self.name(topic)]))

    async def delete_records(self, topic: str, before: int) -> None:
        """Drop the records of partition 0 up to an offset, as retention does."""
        place = TopicPartition(self.name(topic), 0, before)
        await self._administer(lambda: self._admin.delete_records([place]))

    async def set(self, topic: str, name: str, value: str) -> None:
        """Change a setting of a topic."""
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, self.name(topic), incremental_configs=[entry])
        await self._administer(lambda: self._admin.incremental_alter_configs([resource]))

    async def _administer(self, ask: Callable[[], Mapping[Any, Any]]) -> None:
        def wait() -> None:
            for answer in ask().values():
                answer.result(PATIENCE)

        await asyncio.to_thread(wait)


def _seen(message: Any) -> Seen:
    assert message.error() is None, message.error()
    return Seen(message.partition(), message.offset(), message.key(), message.value(), message.headers() or [])
