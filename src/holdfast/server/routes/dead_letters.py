"""Dead letters: what groups and workers could not process; for who administers the tenant."""

from typing import Annotated
from uuid import UUID

import msgspec

from holdfast.bus.dead_letters import DeadLetter
from holdfast.core.errors import NotFound
from holdfast.core.text import store
from holdfast.server.operations import Call, Operations
from holdfast.server.pages import listed

operations = Operations("dead letters")

MAX_PAGE = 100  # each comes with its whole record

Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE)]


class DeadLetterPage(msgspec.Struct, frozen=True):
    """Dead letters, the newest first, and what the next page is asked for `before`; null: there is none."""

    dead_letters: list[DeadLetter]
    cursor: UUID | None


class Redrive(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which dead letters are meant: those of a group, of a topic, of both, or all."""

    group: str | None = None
    topic: str | None = None


class Redriven(msgspec.Struct, frozen=True):
    """How many dead letters are on their way again."""

    redriven: int


@operations.declare("GET", "/api/dead-letters", needs="admin")
async def list_dead_letters(
    call: Call, group: str | None = None, topic: str | None = None, limit: Limit = 50, before: UUID | None = None
) -> DeadLetterPage:
    """What could not be processed, the newest first."""

    async def read(most: int, before: UUID | None) -> list[DeadLetter]:
        return await call.engine.dead_letters.list(**_narrowed(group, topic), limit=most, before=before)

    return DeadLetterPage(*await listed(read, lambda found: found.id, limit=limit, start=before))


# A name comes before ids: the first path that fits is taken.
@operations.declare("POST", "/api/dead-letters/redrive", needs="admin")
async def redrive_dead_letters(call: Call, body: Redrive) -> Redriven:
    """Have every dead letter of a group, a topic or both processed once more."""
    return Redriven(await call.engine.dead_letters.redrive_all(**_narrowed(body.group, body.topic)))


@operations.declare("GET", "/api/dead-letters/{id}", needs="admin", errors=[NotFound])
async def get_dead_letter(call: Call, id: UUID) -> DeadLetter:
    """One dead letter, with the error and the whole record."""
    return await call.engine.dead_letters.get(id)


@operations.declare("POST", "/api/dead-letters/{id}/redrive", needs="admin", status=204, errors=[NotFound])
async def redrive_dead_letter(call: Call, id: UUID) -> None:
    """Have a dead letter processed once more; if it fails again it is dead again."""
    await call.engine.dead_letters.redrive(id)


@operations.declare("DELETE", "/api/dead-letters/{id}", needs="admin", status=204, errors=[NotFound])
async def drop_dead_letter(call: Call, id: UUID) -> None:
    """Forget a dead letter, for good."""
    await call.engine.dead_letters.drop(id)


def _narrowed(group: str | None, topic: str | None) -> dict[str, str | None]:
    """The names as PostgreSQL can compare them: one that nothing can have finds nothing."""
    return {"group": None if group is None else store(group), "topic": None if topic is None else store(topic)}
