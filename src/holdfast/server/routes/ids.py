"""Find ids by prefix: people type only the first digits of an id."""

import re
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.postgres.sql import statements
from holdfast.server.fields import matching
from holdfast.server.operations import ApiCall, ApiOperations

operations = ApiOperations("ids")

MOST = 10  # ids in a response
PREFIX = r"-*([0-9A-Fa-f]-*){1,32}"

Kind = Literal["run", "approval", "execution", "memory", "dead_letter", "document", "ingest_job", "research"]
Prefix = Annotated[str, matching(PREFIX)]

sql = statements(__name__)


class IdList(msgspec.Struct, frozen=True):
    """Ids with the prefix, at most ten. `more`: there are others."""

    ids: list[UUID]
    more: bool


@operations.declare("GET", "/api/ids", needs="admin")
async def find_ids(call: ApiCall, kind: Kind, prefix: Prefix) -> IdList:
    """Find ids of one kind by a prefix of hexadecimal digits, with or without hyphens."""
    first, last = bounds(prefix)
    rows = await call.engine.database.all(sql(f"{kind}_ids"), first, last, MOST + 1)
    return IdList([row["id"] for row in rows[:MOST]], len(rows) > MOST)


def bounds(prefix: str) -> tuple[UUID, UUID]:
    """Return the lowest and the highest id with this prefix."""
    if not re.fullmatch(PREFIX, prefix):
        raise InvalidInput(f"no id begins with {prefix[:80]!r}", next="Give the first digits of one: 0 to 9, a to f.")
    digits = prefix.replace("-", "")
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
