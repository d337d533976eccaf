"""Who has memories, as far as the caller may know: nothing is told of another user, not even that they have some."""

from collections.abc import Sequence
from uuid import UUID

from holdfast.core.cursors import Page, read_cursor, unusable, write_cursor
from holdfast.memory import Holding, Owner, Scope
from holdfast.server.operations import Call
from holdfast.server.possession import SHARED
from holdfast.server.visibility import sees_all

SECTIONS: tuple[Scope, ...] = ("organization", "agent", "user", "session")
LOOKED_AT = 200  # sessions of the caller's, for one page
START = UUID(int=0)  # of a section: nobody has this id


async def seen_holders(call: Call, scope: Scope | None, *, limit: int, cursor: str | None) -> Page[Holding]:
    """Those whose memories the caller may read, scope by scope."""
    places = range(len(SECTIONS)) if scope is None else [SECTIONS.index(scope)]
    first, behind = _place(cursor, places)
    found: list[Holding] = []
    for place in range(first, places[-1] + 1):
        if len(found) == limit:
            return Page(found, write_cursor(START, place))
        page = await _section(call, SECTIONS[place], limit=limit - len(found), cursor=behind)
        found += page
        if page.cursor is not None:
            return Page(found, write_cursor(read_cursor(page.cursor)[0], place))
        behind = None
    return Page(found)


def _place(cursor: str | None, places: Sequence[int]) -> tuple[int, str | None]:
    """In which section a page begins, and behind what."""
    if cursor is None:
        return places[0], None
    id, place = read_cursor(cursor)
    if place not in places:
        raise unusable(cursor)
    return place, None if id == START else write_cursor(id)


async def _section(call: Call, scope: Scope, *, limit: int, cursor: str | None) -> Page[Holding]:
    if sees_all(call.principal) or scope in SHARED:
        return await call.engine.memory.owners(scope, limit=limit, cursor=cursor)
    if scope == "user":
        return Page(await call.engine.memory.holdings(scope, [call.principal.user]))
    return await _own_sessions(call, limit=limit, cursor=cursor)


async def _own_sessions(call: Call, *, limit: int, cursor: str | None) -> Page[Holding]:
    """The caller's sessions that have memories, the newest conversation first."""
    talks = await call.engine.conversations.list(user=call.principal.user, limit=LOOKED_AT, cursor=cursor)
    sessions = [Owner("session", talk.session_id, None, talk.user, talk.id) for talk in talks if talk.session_id]
    held = await call.engine.memory.holdings("session", sessions)
    last = held[limit - 1].owner.conversation if len(held) > limit else None
    if last is not None:
        return Page(held[:limit], write_cursor(last))
    return Page(held, talks.cursor)
