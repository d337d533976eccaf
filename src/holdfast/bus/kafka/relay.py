"""The relay: sends records from PostgreSQL to Kafka in order. Each share of the topics has one relay at a time.

Its position moves after the broker's acknowledgement, so a crash may send records twice, but loses none. A relay that
lost its lease without noticing may send records that another relay has already sent. Consumers drop the duplicates.
"""

import asyncio
import contextlib
import logging
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from itertools import chain
from typing import Any, Self, cast
from uuid import UUID

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer

from holdfast.bus.feed_options import Listen
from holdfast.bus.kafka.brokers import Broker, bad_client_settings
from holdfast.bus.kafka.record_format import OutgoingRecord, outgoing_records, without_value
from holdfast.bus.notifications import POLL, Notifications, channel, until
from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.core.ids import uuid7
from holdfast.core.settings import BusSettings
from holdfast.postgres.database import PooledStatements, Row
from holdfast.postgres.sql import statements

GROUP = ".relay"  # its positions are stored as those of a group; a user's group has no dot in its name
CHANNEL = channel("relay")
FREED = channel("relay", "freed")  # a relay has released its shares
BATCH = 5000
BATCH_BYTES = 8_000_000
DELIVERY = 30.0  # seconds for the broker to acknowledge
SLOW = 2.0  # seconds without an acknowledgement until trouble is reported
PAUSE = 1.0  # seconds after a failure

sql = statements(__name__)
log = logging.getLogger(__name__)


class Report(msgspec.Struct, frozen=True, gc=False):
    """Stores the error of a record by its place. The garbage collector ignores it: each record in flight has one."""

    failed: dict[int, KafkaError]
    place: int

    def __call__(self, error: KafkaError | None, _message: object) -> None:
        """Store the error, if there is one."""
        if error is not None:
            self.failed[self.place] = error


class Relay:
    """Sends records to Kafka for the shares whose leases it holds."""

    def __init__(
        self,
        system: PooledStatements,
        settings: BusSettings,
        broker: Broker,
        listen: Listen,
        notifications: Notifications,
    ) -> None:
        self.last_error = ""  # why it cannot send now, or ""
        self._system = system
        self._broker = broker
        self._listen = listen
        self._notifications = notifications
        self._lease = timedelta(seconds=settings.lease)
        self._max_bytes = settings.max_record_bytes
        self._id: UUID = uuid7()
        self._shares: dict[int, int] = {}  # by share: the epoch
        self._prefetched: tuple[dict[int, int], asyncio.Task[list[Row]]] | None = None  # the next batch, and its shares
        self._producer: Producer | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._woken = await self._stack.enter_async_context(self._listen(CHANNEL))
        self._freed = await self._stack.enter_async_context(self._listen(FREED))
        self._tasks = [
            asyncio.create_task(self._renew_leases(), name="holdfast relay lease"),
            asyncio.create_task(self._run(), name="holdfast relay"),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._discard_prefetched()
        with contextlib.suppress(HoldfastError):
            await self._system.run(sql("release_relay"), self._id)
            self._notifications.send(FREED)
        self._close_producer()
        await self._stack.aclose()

    async def _renew_leases(self) -> None:
        """Renew the leases and take free shares, in a task apart from sending."""
        last_error = ""
        while True:
            try:
                rows = await self._system.all(sql("hold_relay"), self._id, self._lease)
                held = {row["share"]: row["epoch"] for row in rows}
                if held != self._shares:
                    self._shares = held
                    self._woken.set()
                last_error = ""
            except HoldfastError as error:
                if str(error) != last_error:
                    log.warning("could not renew the lease of the relay: %s", error)
                last_error = str(error)
            await until(self._freed, self._lease.total_seconds() / 3)

    async def _run(self) -> None:
        while True:
            try:
                if not (self._shares and await self._step()):
                    self.last_error = ""
                    await until(self._woken, POLL)
            except Exception as error:  # noqa: BLE001 - after any error, records wait and are sent later
                self._discard_prefetched()
                if str(error) != self.last_error:
                    log.warning("could not send records to Kafka; they wait: %s", error)
                self.last_error = str(error)
                await until(self._woken, PAUSE)

    async def _step(self) -> bool:
        """Send a batch. Return whether there was one. A topic that the broker refuses does not delay others."""
        shares = dict(self._shares)
        pages = await self._next(shares)
        if not pages:
            return False
        refusals = await self._ensure(pages)
        pages = [page for page in pages if (page["tenant"], page["topic"]) not in refusals]
        if not refusals:
            self._fetch_ahead(shares, pages)
        failed = await self._send(pages)
        if failed:
            self._discard_prefetched()
        ends = _ends(pages, failed)
        if ends:
            held = list(shares), list(shares.values())
            await self._system.run(sql("move_relay"), GROUP, *_columns(ends), self._id, *held)
        error = next(chain(refusals.values(), map(self._broker.refusal, failed.values())), None)
        if error is not None and not ends:
            raise error
        self.last_error = "" if error is None else str(error)
        return True

    async def _next(self, shares: Mapping[int, int]) -> list[Row]:
        """Return the next batch: the one fetched while the previous was sent, unless the shares have changed since."""
        prefetched, self._prefetched = self._prefetched, None
        if prefetched is not None and prefetched[0] == shares:
            return await prefetched[1] or await self._unsent(shares, ())
        return await self._unsent(shares, ())

    async def _unsent(self, shares: Mapping[int, int], sending: Sequence[Row]) -> list[Row]:
        """Return records that Kafka does not have, a page per partition, after those that are being sent."""
        ends = [(page["tenant_id"], page["topic"], page["partition"], page["offsets"][-1] + 1) for page in sending]
        columns = _columns(ends) or [[], [], [], []]
        return await self._system.all(sql("unsent"), GROUP, list(shares), BATCH, BATCH_BYTES, *columns)

    def _fetch_ahead(self, shares: dict[int, int], pages: Sequence[Row]) -> None:
        task = asyncio.create_task(self._unsent(shares, pages))
        # The task may be dropped before it is awaited. Its error can be ignored: the next step queries again.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._prefetched = shares, task

    def _discard_prefetched(self) -> None:
        if self._prefetched is not None:
            self._prefetched[1].cancel()
            self._prefetched = None

    async def _ensure(self, pages: Sequence[Row]) -> dict[tuple[str, str], Unavailable]:
        """Create missing topics. Return those that the broker refuses, and why."""
        refusals: dict[tuple[str, str], Unavailable] = {}
        wanted = {(page["tenant"], page["topic"]): page["partitions"] for page in pages}
        for (tenant, topic), partitions in wanted.items():
            try:
                await self._broker.ensure(self._broker.name(tenant, topic), partitions)
            except Unavailable as error:
                if not error.details.get("refused"):
                    raise
                refusals[tenant, topic] = error
        return refusals

    async def _send(self, pages: Sequence[Row]) -> dict[int, KafkaError]:
        """Send all pages. Return the errors of failed records by their place, counted over all pages."""
        failed = await self._produce(self._outgoing_records(pages))
        again = (
            {place: one for place, one in enumerate(self._outgoing_records(pages)) if place in failed} if failed else {}
        )
        for place, one in again.items():
            if _is_too_large(failed[place]):  # the broker refused a whole batch: retry each alone
                del failed[place]
                if error := await self._send_large(one):
                    failed[place] = error
        for place in failed:
            self._broker.forget(again[place].topic)
        return failed

    def _outgoing_records(self, pages: Sequence[Row]) -> Iterator[OutgoingRecord]:
        """Yield what to send, one by one: a list of thousands would be work for the garbage collector."""
        return chain.from_iterable(
            outgoing_records(page, self._broker.name(page["tenant"], page["topic"])) for page in pages
        )

    async def _send_large(self, whole: OutgoingRecord) -> KafkaError | None:
        error = (await self._produce([whole])).get(0)
        if error is None or not _is_too_large(error):
            return error
        log.warning("a record of %s is too large for the broker; consumers read it from PostgreSQL", whole.topic)
        return (await self._produce([without_value(whole)])).get(0)

    async def _produce(self, records: Iterable[OutgoingRecord]) -> dict[int, KafkaError]:
        """Send, and wait until all are acknowledged or given up. Return the errors by place."""
        sending = asyncio.ensure_future(asyncio.to_thread(self._produce_all, records))
        await asyncio.wait([sending], timeout=SLOW)
        if not sending.done():
            self.last_error = str(self._broker.timeout_error())
        return await sending

    def _produce_all(self, records: Iterable[OutgoingRecord]) -> dict[int, KafkaError]:
        failed: dict[int, KafkaError] = {}
        producer = self._open_producer()
        for place, one in enumerate(records):
            try:
                self._enqueue(producer, one, Report(failed, place))
            except KafkaException as error:
                failed[place] = error.args[0]
        left = producer.flush(DELIVERY + 5)
        if left or any(error.code() < 0 for error in failed.values()):
            # Records in flight are given up with their producer: they may arrive, and are sent again.
            self._close_producer()
        if left:
            raise self._broker.timeout_error()
        return failed

    def _enqueue(self, producer: Producer, one: OutgoingRecord, report: Report) -> None:
        while True:
            try:
                producer.produce(
                    one.topic,
                    one.value,
                    one.key,
                    one.partition,
                    report,
                    timestamp=one.milliseconds,
                    headers=cast(Any, one.headers),
                )
                return
            except BufferError:  # the producer's queue is full
                producer.poll(0.1)

    def _open_producer(self) -> Producer:
        if self._producer is None:
            settings = {
                "error_cb": self._broker.client_errors.add,
                "enable.idempotence": True,
                "delivery.report.only.error": True,
                "linger.ms": 2,
                "batch.size": 500_000,  # half of the brokers' default limit
                "message.timeout.ms": int(DELIVERY * 1000),
                "topic.metadata.propagation.max.ms": 5000,  # a topic missing after that was removed: create it again
                "message.max.bytes": self._max_bytes + 100_000,
            }
            try:
                self._producer = Producer(self._broker.client(settings))
            except KafkaException as error:
                raise bad_client_settings(error) from error
        return self._producer

    def _close_producer(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer = None


def _ends(pages: Sequence[Row], failed: Container[int]) -> list[tuple[object, ...]]:
    """Return up to where each partition was sent. A failed record stops only its own partition."""
    ends: list[tuple[object, ...]] = []
    start = 0
    for page in pages:
        offsets: list[int] = page["offsets"]
        sent = next((place for place in range(len(offsets)) if start + place in failed), len(offsets))
        if sent:
            columns = ("tenant_id", "topic", "topic_id", "partition", "share")
            ends.append((*(page[column] for column in columns), offsets[sent - 1] + 1))
        start += len(offsets)
    return ends


def _columns(rows: Iterable[Sequence[object]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _is_too_large(error: KafkaError) -> bool:
    return error.code() == KafkaError.MSG_SIZE_TOO_LARGE
