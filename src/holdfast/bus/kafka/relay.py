"""The relay: carries records from PostgreSQL to Kafka, in order, one process at a time for each share of the topics.

Its position moves after the broker's acknowledgement, so a crash sends records twice and loses none. A relay that lost
its lease without noticing may send what another has sent already: consumers drop what is not newer.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, Self, cast
from uuid import UUID

from confluent_kafka import KafkaError, KafkaException, Producer

from holdfast.bus.kafka.brokers import Broker, unusable
from holdfast.bus.kafka.wire import Parcel, parcel
from holdfast.bus.postgres_feed import Listen
from holdfast.bus.wakes import POLL, channel, until
from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.core.ids import uuid7
from holdfast.core.settings import BusSettings
from holdfast.postgres.database import PooledStatements, Row
from holdfast.postgres.sql import statements

GROUP = ".relay"  # its positions are those of a group; no user's group can have a dot in its name
CHANNEL = channel("relay")
BATCH = 2000
BATCH_BYTES = 8_000_000
DELIVERY = 30.0  # seconds for the broker to acknowledge
SLOW = 2.0  # seconds without an acknowledgement that are worth telling
PAUSE = 1.0  # seconds after a failure

sql = statements(__name__)
log = logging.getLogger(__name__)


class Relay:
    """Sends records on to Kafka while it holds the lease."""

    def __init__(self, system: PooledStatements, settings: BusSettings, broker: Broker, listen: Listen) -> None:
        self.trouble = ""  # what keeps it from working now
        self._system = system
        self._broker = broker
        self._listen = listen
        self._lease = timedelta(seconds=settings.lease)
        self._max_bytes = settings.max_record_bytes
        self._id: UUID = uuid7()
        self._shares: dict[int, int] = {}  # with their epochs
        self._producer: Producer | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._woken = await self._stack.enter_async_context(self._listen(CHANNEL))
        self._tasks = [
            asyncio.create_task(self._keep(), name="holdfast relay lease"),
            asyncio.create_task(self._run(), name="holdfast relay"),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(HoldfastError):
            await self._system.run(sql("release_relay"), self._id)
        self._close_producer()
        await self._stack.aclose()

    async def _keep(self) -> None:
        """Hold what shares are free; a lease is renewed apart from the work."""
        while True:
            try:
                rows = await self._system.all(sql("hold_relay"), self._id, self._lease)
                held = {row["share"]: row["epoch"] for row in rows}
                if held != self._shares:
                    self._shares = held
                    self._woken.set()
            except HoldfastError as error:
                log.warning("the relay's lease cannot be renewed: %s", error)
            await asyncio.sleep(self._lease.total_seconds() / 3)

    async def _run(self) -> None:
        while True:
            try:
                if not (self._shares and await self._step()):
                    self.trouble = ""
                    await until(self._woken, POLL)
            except Exception as error:  # noqa: BLE001 - whatever it was, records wait for it to pass
                self.trouble = str(error)
                log.warning("records wait to be sent to Kafka: %s", error)
                await asyncio.sleep(PAUSE)

    async def _step(self) -> bool:
        """Send a batch; whether there was any. What the broker refuses holds up no other topic."""
        shares, epochs = list(self._shares), list(self._shares.values())
        rows = await self._system.all(sql("unsent"), GROUP, shares, BATCH, BATCH_BYTES)
        if not rows:
            return False
        refusals = await self._ensure(rows)
        rows = [row for row in rows if (row["tenant"], row["topic"]) not in refusals]
        failed = await self._send(rows)
        stopped: set[tuple[str, int]] = set()
        ends: dict[tuple[object, ...], int] = {}
        for place, row in enumerate(rows):
            partition = row["topic_id"], row["partition"]
            if place in failed:
                stopped.add(partition)
            elif partition not in stopped:
                ends[row["tenant_id"], row["topic"], row["topic_id"], row["partition"], row["share"]] = (
                    row["offset"] + 1
                )
        if ends:
            columns = [list(column) for column in zip(*ends, strict=True)]
            await self._system.run(sql("move_relay"), GROUP, *columns, list(ends.values()), self._id, shares, epochs)
        for trouble in (*refusals.values(), *map(self._broker.refuses, failed.values())):
            raise trouble
        return True

    async def _ensure(self, rows: Sequence[Row]) -> dict[tuple[str, str], Unavailable]:
        """Have the topics there; those that the broker will not have, and why."""
        refusals: dict[tuple[str, str], Unavailable] = {}
        for (tenant, topic), partitions in {(row["tenant"], row["topic"]): row["partitions"] for row in rows}.items():
            try:
                await self._broker.ensure(self._broker.name(tenant, topic), partitions)
            except Unavailable as error:
                if not error.details["refused"]:
                    raise
                refusals[tenant, topic] = error
        return refusals

    async def _send(self, rows: Sequence[Row]) -> dict[int, KafkaError]:
        """Send them all; the places of those that failed, and why."""
        parcels = [parcel(row, self._broker.name(row["tenant"], row["topic"])) for row in rows]
        failed = await self._produce(parcels)
        large = [place for place, error in failed.items() if error.code() == KafkaError.MSG_SIZE_TOO_LARGE]
        if large:  # the broker's limit is below ours: it gets a mark, and consumers read PostgreSQL
            log.warning("%d records are too large for the broker: consumers read them from PostgreSQL", len(large))
            marks = [parcel(rows[place], parcels[place].topic, elsewhere=True) for place in large]
            for place in large:
                del failed[place]
            failed |= {large[place]: error for place, error in (await self._produce(marks)).items()}
        for place in failed:
            self._broker.forget(parcels[place].topic)
        return failed

    async def _produce(self, parcels: Sequence[Parcel]) -> dict[int, KafkaError]:
        """Send, and wait until all are acknowledged or given up; the places of those that were not taken."""
        sending = asyncio.ensure_future(asyncio.to_thread(self._produce_all, parcels))
        await asyncio.wait([sending], timeout=SLOW)
        if not sending.done():
            self.trouble = str(self._broker.silent())
        return await sending

    def _produce_all(self, parcels: Sequence[Parcel]) -> dict[int, KafkaError]:
        failed: dict[int, KafkaError] = {}
        left = set(range(len(parcels)))

        def report(place: int) -> Any:
            def delivered(error: KafkaError | None, _message: object) -> None:
                left.discard(place)
                if error is not None:
                    failed[place] = error

            return delivered

        producer = self._open_producer()
        for place, one in enumerate(parcels):
            try:
                self._enqueue(producer, one, report(place))
            except KafkaException as error:
                left.discard(place)
                failed[place] = error.args[0]
        producer.flush(DELIVERY + 5)
        if left or any(error.code() < 0 for error in failed.values()):
            # What is still under way is given up with its producer: it may arrive, and is sent again.
            self._close_producer()
        return failed | {place: KafkaError(KafkaError._TIMED_OUT) for place in left}  # pyright: ignore[reportPrivateUsage]

    def _enqueue(self, producer: Producer, one: Parcel, report: Any) -> None:
        while True:
            try:
                producer.produce(
                    one.topic,
                    partition=one.partition,
                    key=one.key,
                    value=one.value,
                    headers=cast(Any, one.headers),
                    timestamp=one.milliseconds,
                    on_delivery=report,
                )
                return
            except BufferError:  # its queue is full
                producer.poll(0.1)

    def _open_producer(self) -> Producer:
        if self._producer is None:
            settings = {
                "error_cb": self._broker.noticed,
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": int(DELIVERY * 1000),
                "message.max.bytes": self._max_bytes + 100_000,
            }
            try:
                self._producer = Producer(self._broker.client(settings))
            except KafkaException as error:
                raise unusable(error) from error
        return self._producer

    def _close_producer(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer = None
