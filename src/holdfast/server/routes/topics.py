"""Topics and their records.

Records belong to the tenant and can contain data of all its users. So topics need the scope `admin`, as do consumer
groups, dead letters and commands.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec

from holdfast.bus.records import TRACE_HEADERS, Record
from holdfast.bus.replay import Replay, ReplayPage
from holdfast.bus.topics import MAX_PARTITIONS, Topic
from holdfast.core.errors import Conflict, InvalidInput, NotFound
from holdfast.server.fields import TopicName, ZonedMoment, about
from holdfast.server.operations import ApiCall, ApiOperations

operations = ApiOperations("topics")

MAX_PAGE = 1000

Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE)]
Partitions = Annotated[int, msgspec.Meta(ge=1, le=MAX_PARTITIONS)]
Headers = dict[Annotated[str, msgspec.Meta(min_length=1)], str]
Partition = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Positions = Annotated[str, msgspec.Meta(pattern=r"^\d{1,9}:\d{1,18}(,\d{1,9}:\d{1,18})*$", max_length=50_000)]


class NewTopic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A topic to create. The number of partitions never changes. Its default is in the settings."""

    name: TopicName
    partitions: Annotated[Partitions | None, about("Number of partitions. The default is a setting.")] = None


class MadeTopic(msgspec.Struct, frozen=True):
    """A topic that was created or existed already."""

    name: str
    partitions: int


class TopicList(msgspec.Struct, frozen=True):
    """Topics, by name."""

    topics: list[Topic]


class NewRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record to publish. Records with the same key stay in order. `id` lets consumers detect duplicates."""

    value: Any
    key: str | None = None
    headers: Headers = {}
    id: UUID | None = None


class PublishedRecord(msgspec.Struct, frozen=True):
    """A record of a topic. `offset` is its position in the partition, starting at 0."""

    topic: str
    partition: int
    offset: int
    at: datetime
    id: UUID
    key: str | None
    headers: dict[str, str]
    value: Any


class RecordPage(msgspec.Struct, frozen=True):
    """Records, and the next offset of each partition. To get the next page, pass these: `positions=0:17,1:5`."""

    records: list[PublishedRecord]
    next: dict[int, int]


@operations.declare("GET", "/api/topics", needs="admin")
async def list_topics(call: ApiCall) -> TopicList:
    """List topics, with the rate and the oldest record of each."""
    return TopicList(await call.engine.log.topics())


@operations.declare("POST", "/api/topics", needs="admin", status=201, errors=[Conflict], audit=["name"])
async def create_topic(call: ApiCall, body: NewTopic) -> MadeTopic:
    """Create a topic, unless it exists."""
    return MadeTopic(body.name, await call.engine.log.create(body.name, partitions=body.partitions))


@operations.declare("DELETE", "/api/topics/{name}", needs="admin", status=204, errors=[NotFound])
async def remove_topic(call: ApiCall, name: TopicName) -> None:
    """Delete a topic permanently, with its records and the positions of its groups. Dead letters are kept."""
    try:
        await call.engine.log.remove(name)
    except NotFound as error:  # its advice is to create the topic
        raise NotFound(error.what, next="List the topics with `holdfast topics ls`.") from None


@operations.declare("GET", "/api/topics/{name}/records", needs="admin", errors=[NotFound])
async def read_records(
    call: ApiCall,
    name: TopicName,
    partition: Partition | None = None,
    offset: Offset | None = None,
    at: ZonedMoment | None = None,
    positions: Positions | None = None,
    newest: bool = False,
    limit: Limit = 100,
) -> RecordPage:
    """Read records from an offset, a time or `positions` on, or the newest. This moves no consumer group."""
    if (offset is not None or at is not None) + (positions is not None) + newest > 1:
        raise InvalidInput("the start is given more than once", next="Give an offset, a time, positions or newest.")
    replay = Replay(call.engine.database, call.engine.config.bus)
    if newest:
        return _record_page(await replay.newest(name, partition=partition, limit=limit))
    if positions is not None:
        start = {int(number): int(begin) for number, _, begin in (p.partition(":") for p in positions.split(","))}
    else:
        start = await replay.start(name, partition=partition, offset=offset, at=at)
    return _record_page(await replay.page(name, start, limit=limit))


# Not audited: the log itself has the records, and programs publish many.
@operations.declare("POST", "/api/topics/{name}/records", needs="admin", status=201, errors=[NotFound], audit=False)
async def publish_record(call: ApiCall, name: TopicName, body: NewRecord) -> PublishedRecord:
    """Publish a record. It is durable when the response arrives."""
    return _published_record(
        await call.engine.log.publish(
            name, value=body.value, key=body.key, headers=with_trace_headers(call, body.headers), id=body.id
        )
    )


def with_trace_headers(call: ApiCall, headers: Mapping[str, str]) -> dict[str, str]:
    """Return the given headers together with the trace headers of the request."""
    sent = call.request.headers
    return {**{name: sent[name] for name in TRACE_HEADERS if name in sent}, **headers}


def _record_page(page: ReplayPage) -> RecordPage:
    return RecordPage([_published_record(record) for record in page.records], page.next)


def _published_record(record: Record) -> PublishedRecord:
    """Return the record without the fields that only consumers need."""
    return PublishedRecord(
        record.topic, record.partition, record.offset, record.at, record.id, record.key, record.headers, record.value
    )
