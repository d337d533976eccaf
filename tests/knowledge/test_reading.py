"""Documents are read exactly: by section, page, chunk and characters."""

import pytest

from holdfast.core.errors import InvalidInput, NotFound
from holdfast.knowledge.knowledge import Knowledge
from holdfast.knowledge.readings import Mark, page_range, section_range, sections
from tests.knowledge.conftest import Watched, story

MARKS = [
    Mark(0, 1, 0, ""),
    Mark(0, 1, 1, "Handbook"),
    Mark(10, 1, 2, "4.1 Travel"),
    Mark(20, 2, 0, ""),
    Mark(30, 2, 3, "Flights"),
    Mark(40, 3, 0, ""),
    Mark(45, 3, 2, "4.2 Approval"),
    Mark(60, 3, 1, "Annex"),
]
TEXT = """# Handbook

Welcome  to   the
handbook.

## 4.1 Travel

Book   early.

```
    indented code

    more
```

## 4.2 Approval

| who | what |
|---|---|
| Ann | trips |

中文也可以。第二句话。
"""


def test_sections_end_at_the_next_heading_of_their_level() -> None:
    found = sections(MARKS, 80)

    assert [(each.path, each.start, each.end, each.page) for each in found] == [
        (("Handbook",), 0, 60, 1),
        (("Handbook", "4.1 Travel"), 10, 45, 1),
        (("Handbook", "4.1 Travel", "Flights"), 30, 45, 2),
        (("Handbook", "4.2 Approval"), 45, 60, 3),
        (("Annex",), 60, 80, 3),
    ]


@pytest.mark.parametrize(
    ("wanted", "start"),
    [
        (["4.2"], 45),
        (["4.2 approval"], 45),
        (["travel"], 10),
        (["  FLIGHTS "], 30),
        (["4.1 Travel", "Flights"], 30),
        (["Annex"], 60),
    ],
)
def test_a_section_is_found_by_its_heading_number_or_path(wanted: list[str], start: int) -> None:
    assert section_range(MARKS, 80, wanted).start == start


@pytest.mark.parametrize("wanted", [["4"], ["nothing"], ["Annex", "Flights"], [""]])
def test_an_unknown_section_is_not_found(wanted: list[str]) -> None:
    with pytest.raises(NotFound, match="the document has no section"):
        section_range(MARKS, 80, wanted)


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("4.2 Aproval", "'4.2 Approval'"),
        ("the Travel rules", "'4.1 Travel'"),
        ("x", "'Handbook', '4.1 Travel', 'Flights'"),
    ],
)
def test_the_error_for_an_unknown_section_names_those_that_may_be_meant(wanted: str, near: str) -> None:
    with pytest.raises(NotFound) as error:
        section_range(MARKS, 80, [wanted])

    assert error.value.next == f"Read its outline, and use a heading of it, such as {near}."


def test_a_page_ends_where_the_next_one_begins() -> None:
    assert [page_range(MARKS, 80, page) for page in (1, 2, 3)] == [(0, 20), (20, 40), (40, 80)]
    with pytest.raises(NotFound, match="no page 4: its pages are 1 to 3"):
        page_range(MARKS, 80, 4)


@pytest.mark.req("KNOW-02")
async def test_every_range_of_a_document_is_read_exactly(knowledge: Knowledge, watched: Watched) -> None:
    text = TEXT + "\n" + story("whale", 30)
    document = await knowledge.add(text=text, name="handbook.md")
    whole = (await knowledge.read(document.id, limit=200_000)).text

    pieces: list[str] = []
    at: int | None = 0
    while at is not None:
        reading = await knowledge.read(document.id, start=at, limit=777)
        assert reading.text == whole[reading.start : reading.end]
        pieces.append(reading.text)
        at = reading.next

    assert whole == text.rstrip("\n")
    assert len(whole) == document.characters
    assert "".join(pieces) == whole
    for start, end in ((0, 0), (5, 6), (1000, 5000), (document.characters - 3, 10**9), (10**9, 10**9 + 5)):
        assert (await knowledge.read(document.id, start=start, end=end)).text == whole[start:end]


@pytest.mark.req("KNOW-02")
async def test_sections_and_chunks_with_their_neighbours_are_read(knowledge: Knowledge, watched: Watched) -> None:
    document = await knowledge.add(text=TEXT + "\n" + story("whale", 30), name="handbook.md")
    whole = (await knowledge.read(document.id, limit=200_000)).text

    outline = await knowledge.outline(document.id)
    approval = await knowledge.read(document.id, section="4.2")
    middle = await knowledge.read(document.id, chunk=3)
    around = await knowledge.read(document.id, chunk=3, around=1)
    cut = await knowledge.read(document.id, section="Section 7 of whale", limit=100)
    rest = await knowledge.read(document.id, section="Section 7 of whale", start=cut.next)

    assert [each.title for each in outline[:4]] == ["Handbook", "4.1 Travel", "4.2 Approval", "Section 1 of whale"]
    assert len(outline) == 33
    assert all(whole[each.start : each.end].lstrip("# ").startswith(each.title) for each in outline)
    assert approval.text.strip() == whole[whole.index("## 4.2") : whole.index("## Section 1 ")].strip()
    assert middle.text in around.text
    assert around.start < middle.start < middle.end < around.end
    assert (cut.text + rest.text).strip() == whole[whole.index("## Section 7 ") : whole.index("## Section 8 ")].strip()
    with pytest.raises(NotFound, match="the document has no chunk 1000"):
        await knowledge.read(document.id, chunk=1000)
    with pytest.raises(NotFound, match="it has no pages"):
        await knowledge.read(document.id, page=1)
    with pytest.raises(InvalidInput, match="both section and page"):
        await knowledge.read(document.id, section="4.2", page=1)
    with pytest.raises(InvalidInput, match="the end 1 is before the start 2"):
        await knowledge.read(document.id, start=2, end=1)
    with pytest.raises(InvalidInput, match="the limit 0 is invalid"):
        await knowledge.read(document.id, limit=0)
