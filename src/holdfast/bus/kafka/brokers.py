"""The broker: how it is reached, what topics are called there, and that they exist."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from holdfast.core.errors import BadSetting, Unavailable
from holdfast.core.settings import BusSettings

log = logging.getLogger(__name__)

# What librdkafka says: it repeats itself every second while a broker is away, which the relay tells in a sentence.
clients = logging.getLogger(f"{__name__}.client")
clients.setLevel(logging.CRITICAL)

TIMEOUT = 10.0  # seconds for an answer of the broker
RECENT = 60.0  # seconds in which what a client complained of may be why something fails: it does not repeat itself

UNKNOWN = (KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART)  # pyright: ignore[reportPrivateUsage]

Place = tuple[str, int]  # a topic there, and a partition


class Range(NamedTuple):
    """Where a partition begins on Kafka, and where it ends."""

    begin: int
    end: int


class Client(Protocol):
    """What clients of Kafka have in common."""

    def poll(self, timeout: float, /) -> object:
        """Hear of what happened."""
        ...

    def __exit__(self, *exits: object) -> object: ...


C = TypeVar("C", bound=Client)


class Complaints:
    """What clients complain of, such as of a password: what fails afterwards does not say why."""

    def __init__(self) -> None:
        self._last: tuple[float, str] = (0.0, "")

    def add(self, error: KafkaError) -> None:
        """A client complains."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # pyright: ignore[reportPrivateUsage]
            self._last = time.monotonic(), error.str()

    @property
    def recent(self) -> str:
        """The last one, if it is recent."""
        since, text = self._last
        return text if time.monotonic() < since + RECENT else ""


class SharedClient(Generic[C]):
    """A client of Kafka that any thread may use.

    It is closed when its last user is done. It is never left to the garbage collector, which takes a client apart
    before it ends the client's threads.
    """

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._client: C | None = None
        self._users = 0
        self._closing = False

    @contextmanager
    def use(self) -> Generator[C]:
        """The client; its first user makes it."""
        with self._lock:
            if self._client is None:
                try:
                    self._client = self._make()
                except KafkaException as error:
                    raise unusable(error) from error
            self._client.poll(0)  # what it complained of meanwhile would pile up
            self._users += 1
            client = self._client
        try:
            yield client
        finally:
            with self._lock:
                self._users -= 1
                self._close_if_unused()

    def listen(self) -> None:
        """Hear what it complains of."""
        with self._lock:
            if self._client is not None:
                self._client.poll(0)

    def close(self) -> None:
        """End the client, now or when those who use it are done."""
        with self._lock:
            self._closing = True
            self._close_if_unused()

    def _close_if_unused(self) -> None:
        if self._closing and not self._users and self._client is not None:
            self._client.__exit__(None, None, None)
            self._client = None


class Broker:
    """The Kafka that the settings name."""

    def __init__(self, settings: BusSettings) -> None:
        self._settings = settings
        self._known: dict[str, int] = {}
        self.complaints = Complaints()
        self._admin: SharedClient[Any] = SharedClient(lambda: AdminClient(self._shared_settings()))
        # Its own way to ask for offsets: an AdminClient's crashes now and then where it does not know the leaders yet.
        self._reader: SharedClient[Any] = SharedClient(
            lambda: Consumer(self._shared_settings({"group.id": "none", "enable.auto.commit": False}))
        )

    async def close(self) -> None:
        """End the connections."""
        await asyncio.to_thread(self._admin.close)
        await asyncio.to_thread(self._reader.close)

    @property
    def address(self) -> str:
        """Where it is."""
        return self._settings.url.removeprefix("kafka://")

    def client(self, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Settings of a client: ours, those of this client, and what the user adds."""
        bus = self._settings
        self._refuse_missing_files()
        given = {
            "bootstrap.servers": self.address,
            "security.protocol": bus.security_protocol,
            "sasl.mechanism": bus.sasl_mechanism,
            "sasl.username": bus.sasl_username,
            "sasl.password": bus.sasl_password.get_secret_value() if bus.sasl_password else None,
            "ssl.ca.location": bus.ssl_ca,
            "ssl.certificate.location": bus.ssl_certificate,
            "ssl.key.location": bus.ssl_key,
            "ssl.key.password": bus.ssl_key_password.get_secret_value() if bus.ssl_key_password else None,
            "reconnect.backoff.max.ms": 2000,
            "logger": clients,
            **(settings or {}),
        }
        return {name: value for name, value in given.items() if value is not None} | self._options()

    def name(self, tenant: str, name: str) -> str:
        """What a tenant's topic or group is called there: the tenant leads it, but for `default`; names have no dot."""
        return f"{self._settings.prefix}{name}" if tenant == "default" else f"{self._settings.prefix}{tenant}.{name}"

    async def ensure(self, topic: str, partitions: int) -> None:
        """Make a topic there, unless it is there; one with fewer partitions gets the missing ones."""
        if self._known.get(topic, 0) < partitions:
            await asyncio.to_thread(self._ensure, topic, partitions)
            self._known[topic] = partitions

    async def partitions(self, topics: Sequence[str]) -> dict[str, int]:
        """How many partitions each of these topics has there; those that it does not have are missing."""
        return await asyncio.to_thread(self._partitions, topics)

    def forget(self, topic: str) -> None:
        """Look for the topic anew: somebody may have removed it."""
        self._known.pop(topic, None)

    async def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        """The end of each partition; those that it cannot tell of are missing."""
        return await asyncio.to_thread(self._offsets, dict.fromkeys(places, OFFSET_END))

    async def offsets_at(self, times: Mapping[Place, datetime], ends: Mapping[Place, int]) -> dict[Place, int]:
        """The first record of each partition from a time on; where there is none, its end as it was before."""
        found = await asyncio.to_thread(
            self._offsets, {place: int(at.timestamp() * 1000) for place, at in times.items()}
        )
        return {place: ends[place] if offset < 0 else offset for place, offset in found.items()}

    async def ranges(self, places: Sequence[Place], *, timeout: float) -> dict[Place, Range]:
        """Where each partition begins and ends; those that it does not have are missing."""
        return await asyncio.to_thread(self._ranges, places, timeout)

    async def times(self, offsets: Mapping[Place, int], *, timeout: float) -> dict[Place, datetime]:
        """When the record at an offset of each partition, or the first after it, was published."""
        return await asyncio.to_thread(self._times, offsets, timeout)

    def silent(self) -> Unavailable:
        """It has not answered."""
        return self._away("it does not answer")

    def refuses(self, error: KafkaError) -> Unavailable:
        """It did not take a record."""
        return self._away(error.str())

    async def check(self) -> str:
        """Whether it answers, and what it is; for the doctor."""
        return await asyncio.to_thread(self._check)

    def _check(self) -> str:
        with self._admin.use() as admin:
            try:
                found = admin.list_topics(timeout=TIMEOUT)
            except KafkaException as error:
                raise self._away(reason(error)) from error
            return f"brokers: {len(found.brokers)}, topics: {len(found.topics)}"

    def _partitions(self, topics: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        with self._admin.use() as admin:
            answers = admin.describe_topics(TopicCollection([*topics]), request_timeout=TIMEOUT)
            for topic, answer in answers.items():
                try:
                    found[topic] = len(answer.result().partitions)
                except KafkaException as error:
                    if _code(error) < 0:  # not an answer of the broker
                        raise self._away(reason(error)) from error
        return found

    def _offsets(self, wanted: Mapping[Place, int]) -> dict[Place, int]:
        try:
            return self._list_offsets(wanted, TIMEOUT)
        except KafkaException as error:
            log.warning("Kafka cannot tell where to begin, reading from the start: %s", reason(error))
            return {}

    def _ranges(self, places: Sequence[Place], timeout: float) -> dict[Place, Range]:
        try:
            begins, ends = (
                self._list_offsets(dict.fromkeys(places, end), timeout) for end in (OFFSET_BEGINNING, OFFSET_END)
            )
        except KafkaException as error:
            raise self._away(reason(error)) from error
        return {place: Range(begins[place], ends[place]) for place in places if place in begins and place in ends}

    def _list_offsets(self, wanted: Mapping[Place, int], timeout: float) -> dict[Place, int]:
        """The offset at a time, or at an end, of each partition; those that the broker cannot tell of are missing."""
        with self._reader.use() as reader:
            asked = [TopicPartition(*place, at) for place, at in wanted.items()]
            try:
                found: list[TopicPartition] = reader.offsets_for_times(asked, timeout=timeout)
            except KafkaException as error:
                if _code(error) in UNKNOWN:
                    return {}
                raise
        return {(one.topic, one.partition): one.offset for one in found if one.error is None}

    def _times(self, offsets: Mapping[Place, int], timeout: float) -> dict[Place, datetime]:
        deadline = time.monotonic() + timeout
        found: dict[Place, datetime] = {}
        try:
            reader = Consumer(self.client({"group.id": "none", "enable.auto.commit": False, "fetch.wait.max.ms": 10}))
        except KafkaException as error:
            raise unusable(error) from error
        try:
            reader.assign([TopicPartition(*place, offset) for place, offset in offsets.items()])
            while len(found) < len(offsets) and time.monotonic() < deadline:
                message = reader.poll(0.1)
                if message is not None and message.error() is None:
                    place = str(message.topic()), int(message.partition() or 0)
                    found.setdefault(place, datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC))
                    reader.pause([TopicPartition(*place)])  # one of each will do
        finally:
            reader.close()
        return found

    def _ensure(self, topic: str, partitions: int) -> None:
        new = NewTopic(topic, num_partitions=partitions, replication_factor=self._settings.replication)
        with self._admin.use() as admin:
            try:
                admin.create_topics([new], request_timeout=TIMEOUT)[topic].result()
            except KafkaException as error:
                if _code(error) != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise self._away(reason(error), refused=_code(error) > 0) from error
                self._widen(admin, topic, partitions)

    def _widen(self, admin: Any, topic: str, partitions: int) -> None:
        try:
            found = admin.list_topics(topic, timeout=TIMEOUT)
            if len(found.topics[topic].partitions) < partitions:
                admin.create_partitions([NewPartitions(topic, partitions)], request_timeout=TIMEOUT)[topic].result()
        except KafkaException as error:
            raise self._away(reason(error), refused=_code(error) > 0) from error

    def _shared_settings(self, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self.client({"error_cb": self.complaints.add, **(settings or {})})

    def _options(self) -> dict[str, str]:
        options: dict[str, str] = {}
        for option in self._settings.options:
            name, equals, value = option.partition("=")
            if not equals:
                raise BadSetting(
                    f"{option} in bus.options has no value", next=f"Write `{option}=…`.", key="bus.options"
                )
            options[name.strip()] = value.strip()
        return options

    def _refuse_missing_files(self) -> None:
        bus = self._settings
        for key, file in {"ssl_ca": bus.ssl_ca, "ssl_certificate": bus.ssl_certificate, "ssl_key": bus.ssl_key}.items():
            if file and not Path(file).exists():
                raise BadSetting(f"bus.{key} is {file}, and there is no such file", key=f"bus.{key}")

    def _away(self, why: str, *, refused: bool = False) -> Unavailable:
        self._admin.listen()
        self._reader.listen()
        complaint = "" if refused else self.complaints.recent
        return Unavailable(
            f"Kafka at {self.address} does not do what it is asked",
            why=f"{why}; {complaint}" if complaint else why,
            next="Check that it runs, that bus.url is right, and that our user may make topics there. "
            "Records wait in PostgreSQL meanwhile, and none is lost.",
            refused=refused,
        )


def reason(error: KafkaException) -> str:
    """What a Kafka client says is wrong."""
    first = error.args[0] if error.args else error
    return first.str() if isinstance(first, KafkaError) else str(first)


def _code(error: KafkaException) -> int:
    """What the broker answered; below zero what the client found by itself."""
    first = error.args[0] if error.args else None
    return first.code() if isinstance(first, KafkaError) else -1


def unusable(error: KafkaException) -> BadSetting:
    """The settings are not Kafka's."""
    return BadSetting(
        "the settings for Kafka cannot be used",
        why=reason(error),
        next="Correct bus.options and the other settings under bus.",
    )
