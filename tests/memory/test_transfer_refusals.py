"""What cannot be exported or imported, and what is said of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.config import Config
from holdfast.core.errors import InvalidInput
from holdfast.engine import Engine
from holdfast.memory import import_export, user
from holdfast.memory.import_export import ImportReport
from tests.memory.test_transfer import exported, memories
from tests.memory.without_models import without_models

pytestmark = pytest.mark.req("MEM-14")


@pytest.fixture
def config(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The settings of an engine that finds by words alone."""
    return without_models(config, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", [1, 500], ids=["over several pages", "in one page"])
@pytest.mark.parametrize(
    ("successors", "refused_line"),
    [([None, 1, None], 3), ([None, 2, 1], 4), ([1, 2, 0], 4), ([2, 0, 1], 4), ([0, 2, 1], 2)],
    ids=["itself", "two", "forward", "backward", "two circles"],
)
async def test_a_line_that_closes_a_circle_of_successors_is_named_and_what_came_before_it_stays(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, successors: list[int | None], refused_line: int, page: int
) -> None:
    for number in range(3):
        await engine.memory.remember(user("ann"), f"tea {number}")
    first, *lines = await exported(engine, user("ann"))
    given = [json.loads(line) for line in lines]
    ids = [each["id"] for each in given]
    for each, next in zip(given, successors, strict=True):
        each["superseded_by"] = None if next is None else ids[next]
    monkeypatch.setattr(import_export, "PAGE", page)

    with pytest.raises(InvalidInput, match="would supersede itself") as refused:
        await engine.memory_transfer.load([first, *(json.dumps(each).encode() for each in given)], into=user("bob"))

    assert refused.value.details == {"line": refused_line}
    kept = memories(await exported(engine, user("bob")))
    assert [each["content"] for each in kept] == [f"tea {number}" for number in range(refused_line - 2)]


async def test_a_mark_before_the_first_line_is_taken(engine: Engine) -> None:
    await engine.memory.remember(user("ann"), "likes tea")
    header, *lines = await exported(engine, user("ann"))

    done = await engine.memory_transfer.load([b"\xef\xbb\xbf" + header, *lines], into=user("bob"))

    assert done == ImportReport(added=1)


@pytest.mark.parametrize(
    "given",
    [
        {"lines": "abc"},
        {"lines": b"abc"},
        {"lines": 5},
        {"lines": None},
        {"lines": ['{"format": "holdfast.memories", "version": 1}']},
        {"lines": [], "into": "ann"},
        {"lines": [], "first_line": "a"},
        {"lines": [], "first_line": 0},
    ],
    ids=str,
)
async def test_what_cannot_be_loaded_is_refused_and_what_can_is_said(engine: Engine, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"Pass |Use ") as refused:
        await engine.memory_transfer.load(**given)

    assert "nothing to import" not in refused.value.what


@pytest.mark.parametrize("whose", ["foo", None, 7, ["user"]], ids=str)
async def test_what_has_no_memories_is_not_exported(engine: Engine, whose: Any) -> None:
    with pytest.raises(InvalidInput, match=r'Pass an owner, such as user\("ann"\)'):
        await exported(engine, whose)
