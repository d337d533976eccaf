"""Ids as people see and type them: the first digits are enough where only one thing has them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

import typer

from holdfast.cli.addresses import address
from holdfast.cli.api import Api
from holdfast.core.errors import InvalidInput, NotFound

LEAST = 13  # characters that are shown of an id: they tell the millisecond
FULL = 32
DIGITS = re.compile("[0-9a-fA-F-]+")


def _checked(text: str) -> str:
    """Refuse what cannot be an id before anything is started for it."""
    if not DIGITS.fullmatch(text):
        raise InvalidInput(f"{text[:80]!r} is no id", next="The lists show the ids.")
    return text


Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Its id; the first digits are enough where no other has them.", callback=_checked
    ),
]
Kind = Literal["run", "approval", "execution", "memory", "dead_letter"]
NAMES: Mapping[Kind, str] = {"dead_letter": "dead letter", "execution": "call"}


async def whole_id(api: Api, kind: Kind, text: str) -> UUID:
    """The id that begins so."""
    if (id := full_id(text)) is not None:
        return id
    found = await api.get(address("ids", kind=kind, prefix=text))
    return the_only(NAMES.get(kind, kind), text, found["ids"], more=found["more"])


def the_only(name: str, text: str, ids: Sequence[str], *, more: bool = False) -> UUID:
    """The only one of these ids."""
    if not ids:
        raise NotFound(f"there is no {name} {text[:80]!r}")
    if len(ids) > 1:
        several = ", ".join(ids) + (", …" if more else "")
        raise InvalidInput(f"several begin with {text[:80]!r}", why=several, next="Give more of its digits.")
    return UUID(ids[0])


def full_id(text: str) -> UUID | None:
    """The id that a text is, if it is a whole one."""
    if len(text.replace("-", "")) != FULL:
        return None
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput(f"{text[:80]!r} is no id", next="The lists show the ids.") from None


def shortened_ids(rows: Iterable[Mapping[str, Any]], *columns: str) -> list[dict[str, Any]]:
    """Rows with ids cut to what tells them apart."""
    shown = [dict(row) for row in rows]
    for column in columns:
        ids = {str(row[column]) for row in shown if row.get(column)}
        size = LEAST
        while len({id[:size] for id in ids}) < len(ids):
            size += 1
        for row in shown:
            row[column] = str(row[column])[:size].rstrip("-") if row.get(column) else row.get(column)
    return shown
