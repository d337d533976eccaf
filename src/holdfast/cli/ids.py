"""Ids in the terminal: lists show them shortened, and commands accept a unique prefix."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

import typer

from holdfast.cli.api import Api
from holdfast.core.errors import InvalidInput, NotFound

LEAST = 13  # characters of a shortened id: its time in milliseconds
FULL = 32
DIGITS = re.compile("[0-9a-fA-F-]+")


def _check_id(text: str) -> str:
    """Reject a text that cannot be an id before anything is started for it."""
    if not DIGITS.fullmatch(text):
        raise InvalidInput(f"{text[:80]!r} is not an id", next="Copy an id from the output of a list command.")
    return text


Id = Annotated[
    str,
    typer.Argument(metavar="ID", help="Id, or its first digits if they are unique.", callback=_check_id),
]
Kind = Literal["run", "approval", "execution", "memory", "dead_letter", "document", "ingest_job", "research"]
NAMES: Mapping[Kind, str] = {"dead_letter": "dead letter", "execution": "call", "ingest_job": "job"}


async def whole_id(api: Api, kind: Kind, text: str) -> UUID:
    """Return the full id that starts with the text."""
    if (id := full_id(text)) is not None:
        return id
    found = await api.call("find_ids", kind=kind, prefix=text)
    return the_only(NAMES.get(kind, kind), text, found["ids"], more=found["more"])


def the_only(name: str, text: str, ids: Sequence[str], *, more: bool = False) -> UUID:
    """Return the only id of the list. Raise an error if there is none, or more than one."""
    if not ids:
        raise NotFound(f"there is no {name} {text[:80]!r}")
    if len(ids) > 1:
        several = ", ".join(ids) + (", …" if more else "")
        raise InvalidInput(f"several ids begin with {text[:80]!r}", why=several, next="Give more digits.")
    return UUID(ids[0])


def full_id(text: str) -> UUID | None:
    """Parse a full id; None if the text is shorter."""
    if len(text.replace("-", "")) != FULL:
        return None
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput(
            f"{text[:80]!r} is not an id", next="Copy an id from the output of a list command."
        ) from None


def shortened_ids(rows: Iterable[Mapping[str, Any]], *columns: str) -> list[dict[str, Any]]:
    """Return the rows with ids shortened as far as they stay unique."""
    shown = [dict(row) for row in rows]
    for column in columns:
        ids = {str(row[column]) for row in shown if row.get(column)}
        size = LEAST
        while len({id[:size] for id in ids}) < len(ids):
            size += 1
        for row in shown:
            row[column] = str(row[column])[:size].rstrip("-") if row.get(column) else row.get(column)
    return shown
