"""The Kafka broker: client settings, names and creation of topics, and offsets."""

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

# The log of librdkafka: while a broker is away, it repeats every second what the relay reports in one sentence.
clients = logging.getLogger(f"{__name__}.client")
clients.setLevel(logging.CRITICAL)

TIMEOUT = 10.0  # seconds to wait for an answer of the broker
RECENT = 60.0  # seconds for which a client's error may explain a later failure: clients do not repeat it

UNKNOWN = (KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART)  # pyright: ignore[reportPrivateUsage]
# A partition that was just created, or whose leader changes, has no leader for a moment.
LEADERLESS = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
ELECTION = 0.05  # seconds before a leaderless partition is asked for again

Place = tuple[str, int]  # the name of a topic on Kafka, and a partition


class Range(NamedTuple):
    """The offsets at which a partition begins and ends on Kafka."""

    begin: int
    end: int


class KafkaClient(Protocol):
    """The methods that all Kafka clients have."""

    def poll(self, timeout: float, /) -> object:
        """Run the callbacks of events that have happened."""
        ...

    def __exit__(self, *exits: object) -> object: ...


C = TypeVar("C", bound=KafkaClient)


class ClientErrors:
    """Errors that clients report, such as a wrong password. The failures that follow do not name the cause."""

    def __init__(self) -> None:
        self._last: tuple[float, str] = (0.0, "")

    def add(self, error: KafkaError) -> None:
        """Store an error of a client."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # pyright: ignore[reportPrivateUsage]
            self._last = time.monotonic(), error.str()

    @property
    def recent(self) -> str:
        """The last error, if it is recent, or ""."""
        since, text = self._last
        return text if time.monotonic() < since + RECENT else ""


class SharedClient(Generic[C]):
    """A Kafka client that any thread may use.

    After `close`, it ends when its last user is done. It is never left to the garbage collector, which takes a client
    apart before it ends the client's threads.
    """

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._client: C | None = None
        self._users = 0
        self._closing = False

    @contextmanager
    def use(self) -> Generator[C]:
        """Provide the client. The first use creates it."""
        with self._lock:
            if self._client is None:
                try:
                    self._client = self._make()
                except KafkaException as error:
                    raise bad_client_settings(error) from error
            self._client.poll(0)  # errors reported meanwhile would pile up
            self._users += 1
            client = self._client
        try:
            yield client
        finally:
            with self._lock:
                self._users -= 1
                self._close_if_unused()

    def listen(self) -> None:
        """Receive the errors that the client reports."""
        with self._lock:
            if self._client is not None:
                self._client.poll(0)

    def close(self) -> None:
        """Close the client, now or when its last user is done."""
        with self._lock:
            self._closing = True
            self._close_if_unused()

    def _close_if_unused(self) -> None:
        if self._closing and not self._users and self._client is not None:
            self._client.__exit__(None, None, None)
            self._client = None


class Broker:
    """The Kafka cluster that the settings name."""

    def __init__(self, settings: BusSettings) -> None:
        self._settings = settings
        self._known: dict[str, int] = {}
        self.client_errors = ClientErrors()
        self._admin: SharedClient[Any] = SharedClient(lambda: AdminClient(self._shared_settings()))
        # Queries offsets: an AdminClient sometimes crashes at that while it does not know the leaders yet.
        self._reader: SharedClient[Any] = SharedClient(
            lambda: Consumer(self._shared_settings({"group.id": "none", "enable.auto.commit": False}))
        )

    async def close(self) -> None:
        """Close the clients."""
        await asyncio.to_thread(self._admin.close)
        await asyncio.to_thread(self._reader.close)

    @property
    def address(self) -> str:
        """Its address."""
        return self._settings.url.removeprefix("kafka://")

    def client(self, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the settings of a client: the common ones, those of this client, and `bus.options`."""
        bus = self._settings
        self._refuse_missing_files()
        all_settings = {
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
        return {name: value for name, value in all_settings.items() if value is not None} | self._options()

    def name(self, tenant: str, name: str) -> str:
        """Return the Kafka name of a tenant's topic or group. It begins with the tenant, unless that is `default`."""
        return f"{self._settings.prefix}{name}" if tenant == "default" else f"{self._settings.prefix}{tenant}.{name}"

    async def ensure(self, topic: str, partitions: int) -> None:
        """Create a topic on Kafka, unless it exists. If it has too few partitions, add the missing ones."""
        if self._known.get(topic, 0) < partitions:
            await asyncio.to_thread(self._ensure, topic, partitions)
            self._known[topic] = partitions

    async def partitions(self, topics: Sequence[str]) -> dict[str, int]:
        """Return the number of partitions of each topic on Kafka. Topics that do not exist are missing."""
        return await asyncio.to_thread(self._partitions, topics)

    def forget(self, topic: str) -> None:
        """Make the next `ensure` check the topic again: it may have been removed."""
        self._known.pop(topic, None)

    async def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        """Return the end of each partition. Those without an answer are missing."""
        return await asyncio.to_thread(self._offsets, dict.fromkeys(places, OFFSET_END))

    async def offsets_at(self, times: Mapping[Place, datetime], ends: Mapping[Place, int]) -> dict[Place, int]:
        """Return the first offset of each partition from a time on, or its end in `ends` if there is no record."""
        found = await asyncio.to_thread(
            self._offsets, {place: int(at.timestamp() * 1000) for place, at in times.items()}
        )
        return {place: ends[place] if offset < 0 else offset for place, offset in found.items()}

    async def ranges(self, places: Sequence[Place], *, timeout: float) -> dict[Place, Range]:
        """Return where each partition begins and ends. Partitions that do not exist are missing."""
        return await asyncio.to_thread(self._ranges, places, timeout)

    async def times(self, offsets: Mapping[Place, int], *, timeout: float) -> dict[Place, datetime]:
        """Return when the record at an offset of each partition, or the first one after it, was published."""
        return await asyncio.to_thread(self._times, offsets, timeout)

    def timeout_error(self) -> Unavailable:
        """Return the error for a broker that does not answer."""
        return self._unavailable("it does not respond")

    def refusal(self, error: KafkaError) -> Unavailable:
        """Return the error for a record that the broker did not take."""
        return self._unavailable(error.str())

    async def check(self) -> str:
        """Check that the broker answers, and describe it, for `holdfast doctor`."""
        return await asyncio.to_thread(self._check)

    def _check(self) -> str:
        with self._admin.use() as admin:
            try:
                found = admin.list_topics(timeout=TIMEOUT)
            except KafkaException as error:
                raise self._unavailable(reason(error)) from error
            return f"brokers: {len(found.brokers)}, topics: {len(found.topics)}"

    def _partitions(self, topics: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        with self._admin.use() as admin:
            answers = admin.describe_topics(TopicCollection([*topics]), request_timeout=TIMEOUT)
            for topic, answer in answers.items():
                try:
                    found[topic] = len(answer.result().partitions)
                except KafkaException as error:
                    if _code(error) < 0:  # an error of the client, not of the broker
                        raise self._unavailable(reason(error)) from error
        return found

    def _offsets(self, wanted: Mapping[Place, int]) -> dict[Place, int]:
        try:
            return self._list_offsets(wanted, TIMEOUT)
        except KafkaException as error:
            log.warning("Kafka returned no offsets; reading from the start: %s", reason(error))
            return {}

    def _ranges(self, places: Sequence[Place], timeout: float) -> dict[Place, Range]:
        try:
            begins, ends = (
                self._list_offsets(dict.fromkeys(places, end), timeout) for end in (OFFSET_BEGINNING, OFFSET_END)
            )
        except KafkaException as error:
            raise self._unavailable(reason(error)) from error
        return {place: Range(begins[place], ends[place]) for place in places if place in begins and place in ends}

    def _list_offsets(self, wanted: Mapping[Place, int], timeout: float) -> dict[Place, int]:
        """Return the offset of each partition at a time or an end. Those without an answer are missing."""
        deadline = time.monotonic() + timeout
        with self._reader.use() as reader:
            while True:
                queries = [TopicPartition(*place, at) for place, at in wanted.items()]
                try:
                    found: list[TopicPartition] = reader.offsets_for_times(queries, timeout=timeout)
                except KafkaException as error:
                    if _code(error) in UNKNOWN:
                        return {}
                    if _code(error) not in LEADERLESS or time.monotonic() + ELECTION >= deadline:
                        raise
                    time.sleep(ELECTION)
                else:
                    return {(one.topic, one.partition): one.offset for one in found if one.error is None}

    def _times(self, offsets: Mapping[Place, int], timeout: float) -> dict[Place, datetime]:
        deadline = time.monotonic() + timeout
        found: dict[Place, datetime] = {}
        try:
            reader = Consumer(self.client({"group.id": "none", "enable.auto.commit": False, "fetch.wait.max.ms": 10}))
        except KafkaException as error:
            raise bad_client_settings(error) from error
        try:
            reader.assign([TopicPartition(*place, offset) for place, offset in offsets.items()])
            while len(found) < len(offsets) and time.monotonic() < deadline:
                message = reader.poll(0.1)
                if message is not None and message.error() is None:
                    place = str(message.topic()), int(message.partition() or 0)
                    found.setdefault(place, datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC))
                    reader.pause([TopicPartition(*place)])  # one record per partition is enough
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
                    raise self._unavailable(reason(error), refused=_code(error) > 0) from error
                self._widen(admin, topic, partitions)

    def _widen(self, admin: Any, topic: str, partitions: int) -> None:
        try:
            found = admin.list_topics(topic, timeout=TIMEOUT)
            if len(found.topics[topic].partitions) < partitions:
                admin.create_partitions([NewPartitions(topic, partitions)], request_timeout=TIMEOUT)[topic].result()
        except KafkaException as error:
            raise self._unavailable(reason(error), refused=_code(error) > 0) from error

    def _shared_settings(self, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self.client({"error_cb": self.client_errors.add, **(settings or {})})

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
                raise BadSetting(f"bus.{key} is {file}, and this file does not exist", key=f"bus.{key}")

    def _unavailable(self, why: str, *, refused: bool = False) -> Unavailable:
        self._admin.listen()
        self._reader.listen()
        client_error = "" if refused else self.client_errors.recent
        return Unavailable(
            f"the request to Kafka at {self.address} failed",
            why=f"{why}; {client_error}" if client_error else why,
            next="Check that it runs, that bus.url is correct, and that our user may create topics. "
            "Records wait in PostgreSQL until then; none is lost.",
            refused=refused,
        )


def reason(error: KafkaException) -> str:
    """Return the message of a Kafka error."""
    first = error.args[0] if error.args else error
    return first.str() if isinstance(first, KafkaError) else str(first)


def _code(error: KafkaException) -> int:
    """Return the error code: the broker's, or a negative one for an error of the client."""
    first = error.args[0] if error.args else None
    return first.code() if isinstance(first, KafkaError) else -1


def bad_client_settings(error: KafkaException) -> BadSetting:
    """Return the error for settings that the Kafka client refuses."""
    return BadSetting(
        "the settings for Kafka are invalid",
        why=reason(error),
        next="Correct bus.options and the other settings under bus.",
    )
