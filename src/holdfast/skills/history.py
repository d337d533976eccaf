"""The history of the registry: each change of an agent, skill, tool, source, secret or link, with author and time."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from holdfast.core.errors import InvalidInput
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements
from holdfast.skills.tools import check_limit

ChangeKind = Literal["agent", "skill", "tool", "source", "agent_skill", "skill_tool", "skill_dependency", "secret"]

KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)
CURSOR = r"[0-9]{1,18}\.[0-9]{1,9}"
_CURSOR = re.compile(CURSOR)
_LAST = (2**63 - 1, 2**31 - 1)

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """A change, with the row before and after it. `name` of a link is the skill or agent that has the link."""

    revision: int
    number: int
    kind: ChangeKind
    name: str
    operation: Literal["created", "changed", "removed"]
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    by: str
    at: datetime

    @property
    def cursor(self) -> str:
        """The cursor for the changes before this one."""
        return f"{self.revision}.{self.number}"


class ChangeHistory:
    """Reads the changes of one tenant's registry."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(
        self, kind: ChangeKind | None = None, name: str | None = None, *, limit: int = 100, before: str | None = None
    ) -> list[ChangeRecord]:
        """List changes, newest first. `before` is the `cursor` of the last change of the previous page."""
        check_limit(limit)
        if kind is not None and kind not in KINDS:
            raise InvalidInput(f"the kind {kind!r:.100} is unknown", next=f"Use one of {', '.join(KINDS)}.")
        kinds = KINDS if kind is None else (kind,)
        if name is None:
            rows = await self._database.all(sql("registry_changes"), *_position(before), limit, [*kinds])
        else:
            rows = await self._database.all(
                sql("registry_changes_of_name"), *_position(before), limit, [*kinds], store(name)
            )
        return [_change(row) for row in rows]


def _position(cursor: str | None) -> tuple[int, int]:
    if cursor is None:
        return _LAST
    if not _CURSOR.fullmatch(cursor):
        raise InvalidInput(f"the cursor {cursor!r:.100} is invalid", next="Use the cursor of a change.")
    revision, _, number = cursor.partition(".")
    return int(revision), int(number)


def _change(row: Row) -> ChangeRecord:
    return ChangeRecord(
        row["revision"],
        row["number"],
        row["kind"],
        restore(row["name"]),
        row["operation"],
        row["before"],
        row["after"],
        restore(row["update_user"]),
        row["at"],
    )
