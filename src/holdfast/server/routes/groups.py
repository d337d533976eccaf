"""Consumer groups: their lag, and resets of their positions. Needs the scope `admin`."""

from typing import Annotated, Any

import msgspec

from holdfast.bus.topics import Lag
from holdfast.core.errors import Busy, NotFound
from holdfast.core.text import store
from holdfast.server.fields import TopicName, ZonedMoment, about, documented
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.routes.topics import Offset, Partition

operations = ApiOperations("groups")


class GroupLag(msgspec.Struct, frozen=True):
    """The lag of consumer groups in each partition."""

    partitions: list[Lag]


class GroupReset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a group continues: at an offset, a time, the end or (default) the start; in one partition or in all."""

    topic: TopicName
    partition: Annotated[Partition | None, about("Only this partition.")] = None
    offset: Annotated[Offset | None, about("Continue at this offset.")] = None
    at: Annotated[ZonedMoment | None, about("Continue at this time, such as 2026-01-31T12:00.")] = None
    end: Annotated[bool, about("Continue at the end, after the last record.")] = False


NO_OFFSET: dict[str, Any] = {"offset": {"type": "null"}}
NO_TIME: dict[str, Any] = {"at": {"type": "null"}}
NOT_THE_END: dict[str, Any] = {"end": {"const": False}}
ONE_BEGINNING = documented(
    anyOf=[
        {"properties": {**NO_OFFSET, **NO_TIME}},
        {"properties": {**NO_OFFSET, **NOT_THE_END}},
        {"properties": {**NO_TIME, **NOT_THE_END}},
    ]
)


class GroupPositions(msgspec.Struct, frozen=True):
    """The next offset of a group in each partition."""

    positions: dict[int, int]


@operations.declare("GET", "/api/groups", needs="admin")
async def list_lag(call: ApiCall, group: Annotated[str | None, about("Only this consumer group.")] = None) -> GroupLag:
    """List the lag of all consumer groups, or of one, in each partition."""
    return GroupLag(await call.engine.log.lag(None if group is None else store(group)))


@operations.declare("POST", "/api/groups/{group}/reset", needs="admin", errors=[NotFound, Busy])
async def reset_group(call: ApiCall, group: TopicName, body: Annotated[GroupReset, ONE_BEGINNING]) -> GroupPositions:
    """Reset the position of a consumer group. The group must have no active consumers."""
    return GroupPositions(
        await call.engine.log.reset(
            group, body.topic, partition=body.partition, offset=body.offset, at=body.at, end=body.end
        )
    )
