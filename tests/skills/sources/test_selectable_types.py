"""The types of GraphQL sources in memory."""

import asyncio
from typing import Any

import pytest

from holdfast.skills.sources import selectable_types
from holdfast.skills.sources.selectable_types import SelectableTypes

pytestmark = pytest.mark.req("MCP-04")


class Rows:
    """A database with types of each source. It can be slow for one of them."""

    def __init__(self) -> None:
        self.slow = ""
        self.asked, self.answer = asyncio.Event(), asyncio.Event()

    async def one(self, _: str, source: str, known: bytes) -> dict[str, Any]:
        if source == self.slow:
            self.asked.set()
            await self.answer.wait()
        hash = source.encode()
        return {"hash": hash, "types": None if known == hash else b"{}"}


async def test_types_that_were_dropped_while_they_were_read_are_remembered_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selectable_types, "REMEMBERED", 2)
    rows = Rows()
    types = SelectableTypes(rows)  # type: ignore[arg-type]
    await types.of("first")
    rows.slow = "first"

    reading = asyncio.create_task(types.of("first"))
    await rows.asked.wait()
    for source in ("second", "third"):
        await types.of(source)
    rows.answer.set()

    assert await reading == {}
