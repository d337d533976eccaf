"""Kafka's own client beside our driver: the idempotent producer with callbacks, and `consume` of a page at a time."""

import asyncio
import itertools
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from measure.flows import Flow, Meter

from peers.records import PAGE, PARTITIONS, encoded

_groups = itertools.count()


def make_topic(address: str, topic: str) -> None:
    """A topic with as many partitions as ours have."""
    admin: Any = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result()


def producing(address: str, topic: str) -> Flow:
    """Produce records with a key each, until the broker has acknowledged all."""
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 5, "log_level": 0})

    def produce(records: int) -> None:
        left = records

        def delivered(error: object, _message: object) -> None:
            nonlocal left
            assert error is None, error
            left -= 1

        for number in range(records):
            while True:
                try:
                    producer.produce(topic, encoded(number), key=f"key-{number % 256}", on_delivery=delivered)
                    break
                except BufferError:  # its queue is full
                    producer.poll(0.1)
            producer.poll(0)
        producer.flush()
        assert left == 0

    async def flow(meter: Meter, records: int) -> int:
        with meter:
            await asyncio.to_thread(produce, records)
        return records

    return flow


@contextmanager
def _consumer(address: str, topic: str) -> Generator[Consumer]:
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": f"bare-{next(_groups)}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    yield consumer
    consumer.close()


def consuming(address: str, topic: str) -> Flow:
    """Consume and decode, from the second page on: joining the group is not measured."""

    def consume(meter: Meter, records: int) -> int:
        done = 0
        with _consumer(address, topic) as consumer:
            while not consumer.consume(PAGE, 0.1):
                pass
            with meter:
                while done < records:
                    for message in consumer.consume(PAGE, 0.1):
                        assert message.error() is None, message.error()
                        msgspec.json.decode(message.value() or b"null")
                        done += 1
        return done

    async def flow(meter: Meter, records: int) -> int:
        return await asyncio.to_thread(consume, meter, records)

    return flow
