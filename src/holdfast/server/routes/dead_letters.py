"""Dead letters: records that consumer groups and workers gave up on. Needs the scope `admin`."""

from typing import Annotated
from uuid import UUID

import msgspec

from holdfast.bus.dead_letters import DeadLetter
from holdfast.core.errors import NotFound
from holdfast.core.text import store
from holdfast.server.fields import about
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.pages import page_of_items

operations = ApiOperations("dead letters")

MAX_PAGE = 100  # each includes its whole record

Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE, description="Maximum number of dead letters.")]
OfGroup = Annotated[str | None, about("Only dead letters of this consumer group.")]
OfTopic = Annotated[str | None, about("Only dead letters of this topic.")]
Before = Annotated[UUID | None, about("Only dead letters older than this one.")]


class DeadLetterPage(msgspec.Struct, frozen=True):
    """Dead letters, newest first. Pass `cursor` as `before` to get the next page; it is null on the last page."""

    dead_letters: list[DeadLetter]
    cursor: UUID | None


class Redrive(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which dead letters to redrive: those of a group, of a topic, of both, or all."""

    group: OfGroup = None
    topic: OfTopic = None


class Redriven(msgspec.Struct, frozen=True):
    """The number of dead letters that were redriven."""

    redriven: int


@operations.declare("GET", "/api/dead-letters", needs="admin")
async def list_dead_letters(
    call: ApiCall, group: OfGroup = None, topic: OfTopic = None, limit: Limit = 50, before: Before = None
) -> DeadLetterPage:
    """List dead letters, newest first."""

    async def read(most: int, before: UUID | None) -> list[DeadLetter]:
        return await call.engine.dead_letters.list(**_stored_names(group, topic), limit=most, before=before)

    return DeadLetterPage(*await page_of_items(read, lambda found: found.id, limit=limit, start=before))


# A fixed path comes before `{id}`: the first route that matches is used.
@operations.declare("POST", "/api/dead-letters/redrive", needs="admin")
async def redrive_dead_letters(call: ApiCall, body: Redrive) -> Redriven:
    """Redrive all dead letters, or those of a group, of a topic or of both."""
    return Redriven(await call.engine.dead_letters.redrive_all(**_stored_names(body.group, body.topic)))


@operations.declare("GET", "/api/dead-letters/{id}", needs="admin", errors=[NotFound])
async def get_dead_letter(call: ApiCall, id: UUID) -> DeadLetter:
    """Get a dead letter with its error and its whole record."""
    return await call.engine.dead_letters.get(id)


@operations.declare("POST", "/api/dead-letters/{id}/redrive", needs="admin", status=204, errors=[NotFound])
async def redrive_dead_letter(call: ApiCall, id: UUID) -> None:
    """Redrive a dead letter: process it once more. If it fails again, it is a dead letter again."""
    await call.engine.dead_letters.redrive(id)


@operations.declare("DELETE", "/api/dead-letters/{id}", needs="admin", status=204, errors=[NotFound])
async def drop_dead_letter(call: ApiCall, id: UUID) -> None:
    """Drop a dead letter permanently."""
    await call.engine.dead_letters.drop(id)


def _stored_names(group: str | None, topic: str | None) -> dict[str, str | None]:
    """Return the names in the form that PostgreSQL stores. An impossible name matches nothing."""
    return {"group": None if group is None else store(group), "topic": None if topic is None else store(topic)}
