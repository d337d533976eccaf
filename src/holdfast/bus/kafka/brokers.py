"""The broker: how it is reached, what topics are called there, and that they exist."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewPartitions, NewTopic

from holdfast.core.errors import BadSetting, Unavailable
from holdfast.core.settings import BusSettings

log = logging.getLogger(__name__)

# What librdkafka says: it repeats itself every second while a broker is away, which the relay tells in a sentence.
clients = logging.getLogger(f"{__name__}.client")
clients.setLevel(logging.CRITICAL)

TIMEOUT = 10.0  # seconds for an answer of the broker
RECENT = 60.0  # seconds in which what a client complained of may be why something fails: it does not repeat itself

Place = tuple[str, int]  # a topic there, and a partition


class Range(NamedTuple):
    """Where a partition begins on Kafka, and where it ends."""

    begin: int
    end: int


class Broker:
    """The Kafka that the settings name."""

    def __init__(self, settings: BusSettings) -> None:
        self._settings = settings
        self._known: dict[str, int] = {}
        self._admin: AdminClient | None = None
        self._complaint: tuple[float, str] | None = None

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
        return await asyncio.to_thread(self._offsets, dict.fromkeys(places, OffsetSpec.latest()))

    async def offsets_at(self, times: Mapping[Place, datetime], ends: Mapping[Place, int]) -> dict[Place, int]:
        """The first record of each partition from a time on; where there is none, its end as it was before."""
        specs = {place: OffsetSpec.for_timestamp(int(at.timestamp() * 1000)) for place, at in times.items()}
        found = await asyncio.to_thread(self._offsets, specs)
        return {place: ends[place] if offset < 0 else offset for place, offset in found.items()}

    async def ranges(self, places: Sequence[Place], *, timeout: float) -> dict[Place, Range]:
        """Where each partition begins and ends; those that it does not have are missing."""
        return await asyncio.to_thread(self._ranges, places, timeout)

    async def times(self, offsets: Mapping[Place, int], *, timeout: float) -> dict[Place, datetime]:
        """When the record at an offset of each partition, or the first after it, was published."""
        return await asyncio.to_thread(self._times, offsets, timeout)

    def noticed(self, error: KafkaError) -> None:
        """A client of ours complains, such as of a password: what fails afterwards does not say why."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # pyright: ignore[reportPrivateUsage]
            self._complaint = time.monotonic(), error.str()

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
        try:
            found: Any = self._admin_client().list_topics(timeout=TIMEOUT)
        except KafkaException as error:
            raise self._away(reason(error)) from error
        return f"brokers: {len(found.brokers)}, topics: {len(found.topics)}"

    def _partitions(self, topics: Sequence[str]) -> dict[str, int]:
        admin: Any = self._admin_client()
        answers = admin.describe_topics(TopicCollection([*topics]), request_timeout=TIMEOUT)
        found: dict[str, int] = {}
        for topic, answer in answers.items():
            try:
                found[topic] = len(answer.result().partitions)
            except KafkaException as error:
                if _code(error) < 0:  # not an answer of the broker
                    raise self._away(reason(error)) from error
        return found

    def _offsets(self, specs: Mapping[Place, Any]) -> dict[Place, int]:
        admin: Any = self._admin_client()
        asked = {TopicPartition(*place): spec for place, spec in specs.items()}
        answers = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=TIMEOUT)
        found: dict[Place, int] = {}
        for one, answer in answers.items():
            try:
                found[one.topic, one.partition] = answer.result().offset
            except KafkaException as error:
                log.warning("Kafka cannot tell where to begin, reading from the start: %s", reason(error))
        return found

    def _ranges(self, places: Sequence[Place], timeout: float) -> dict[Place, Range]:
        admin: Any = self._admin_client()
        specs = OffsetSpec.earliest(), OffsetSpec.latest()
        asked = [
            admin.list_offsets(
                {TopicPartition(*place): spec for place in places},
                isolation_level=IsolationLevel.READ_COMMITTED,
                request_timeout=timeout,
            )
            for spec in specs
        ]
        begins, ends = [{(one.topic, one.partition): answer for one, answer in answers.items()} for answers in asked]
        found: dict[Place, Range] = {}
        for place in places:
            try:
                found[place] = Range(begins[place].result().offset, ends[place].result().offset)
            except KafkaException as error:
                if _code(error) < 0:  # not an answer of the broker
                    raise self._away(reason(error)) from error
        return found

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
        admin: Any = self._admin_client()
        new = NewTopic(topic, num_partitions=partitions, replication_factor=self._settings.replication)
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

    def _admin_client(self) -> AdminClient:
        if self._admin is None:
            try:
                self._admin = AdminClient(self.client({"error_cb": self.noticed}))
            except KafkaException as error:
                raise unusable(error) from error
        return self._admin

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
        if self._admin is not None:
            self._admin.poll(0)  # for what it complains of
        since, complaint = self._complaint or (0.0, "")
        recent = complaint and not refused and time.monotonic() < since + RECENT
        return Unavailable(
            f"Kafka at {self.address} does not do what it is asked",
            why=f"{why}; {complaint}" if recent else why,
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
