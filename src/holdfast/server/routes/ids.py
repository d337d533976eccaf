"""Ids by their beginning: people type the first letters of one, as far as no other has them."""

import re
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.postgres.sql import statements
from holdfast.server.fields import matching
from holdfast.server.operations import Call, Operations

operations = Operations("ids")

MOST = 10  # ids that are told
PREFIX = r"-*([0-9A-Fa-f]-*){1,32}"

Kind = Literal["run", "approval", "execution", "memory", "dead_letter"]
Prefix = Annotated[str, matching(PREFIX)]

sql = statements(__name__)


class IdList(msgspec.Struct, frozen=True):
    """Ids that begin alike, at most ten; `more`: there are others."""

    ids: list[UUID]
    more: bool


@operations.declare("GET", "/api/ids", needs="admin")
async def find_ids(call: Call, kind: Kind, prefix: Prefix) -> IdList:
    """The ids of one kind that begin with some digits, with or without hyphens."""
    first, last = bounds(prefix)
    rows = await call.engine.database.all(sql(f"{kind}_ids"), first, last, MOST + 1)
    return IdList([row["id"] for row in rows[:MOST]], len(rows) > MOST)


def bounds(prefix: str) -> tuple[UUID, UUID]:
    """The least and the greatest id that begin with these digits."""
    if not re.fullmatch(PREFIX, prefix):
        raise InvalidInput(f"no id begins with {prefix[:80]!r}", next="Give the first digits of one: 0 to 9, a to f.")
    digits = prefix.replace("-", "")
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
