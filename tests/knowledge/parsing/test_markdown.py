from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from holdfast.knowledge.parsing import markdown
from holdfast.knowledge.parsing.limits import ParseLimits
from holdfast.knowledge.parsing.portions import PORTION
from holdfast.knowledge.parsing.units import Unit
from tests.rules.tree import ROOT

pytestmark = pytest.mark.req("KNOW-01")


def units(path: Path, text: str | None = None, first: int = 1) -> list[Unit]:
    if text is not None:
        path.write_text(text)
    return list(markdown.parse(path, first=first, limits=ParseLimits()))


def blocks(path: Path, text: str) -> list[tuple[str, int, str]]:
    return [
        (block.kind, block.level, unit.text[block.start : block.end])
        for unit in units(path, text)
        for block in unit.blocks
    ]


CASES = {
    "headings": (
        "# One\ntext\n### Three ###\n",
        [("heading", 1, "# One"), ("paragraph", 0, "text"), ("heading", 3, "### Three ###")],
    ),
    "underlined": (
        "One\n===\n\nTwo\nlines\n---\ntext",
        [("heading", 1, "One\n==="), ("heading", 2, "Two\nlines\n---"), ("paragraph", 0, "text")],
    ),
    "a rule is no heading": (
        "text\n\n---\n\nmore",
        [("paragraph", 0, "text"), ("paragraph", 0, "---"), ("paragraph", 0, "more")],
    ),
    "no heading without a blank": ("#hashtag", [("paragraph", 0, "#hashtag")]),
    "code": (
        "```python\n# no heading\n\nx = 1\n```\ntext",
        [("code", 0, "```python\n# no heading\n\nx = 1\n```"), ("paragraph", 0, "text")],
    ),
    "longer fences": ("~~~~\n~~~\n# no\n~~~~\n# yes", [("code", 0, "~~~~\n~~~\n# no\n~~~~"), ("heading", 1, "# yes")]),
    "an open fence": ("```\n# no\n", [("code", 0, "```\n# no")]),
    "indented code": (
        "text\n\n    code\n\n    # code\n\nmore",
        [("paragraph", 0, "text"), ("code", 0, "    code\n\n    # code"), ("paragraph", 0, "more")],
    ),
    "a table": (
        "Intro\n| a | b |\n|---|:-:|\n| 1 | 2 |\n\nmore",
        [("paragraph", 0, "Intro"), ("table", 0, "| a | b |\n|---|:-:|\n| 1 | 2 |"), ("paragraph", 0, "more")],
    ),
    "a list": (
        "- one\n  more\n\n- two\n  ```\n  # no\n  ```\n\ntext",
        [("list", 0, "- one\n  more\n\n- two\n  ```\n  # no\n  ```"), ("paragraph", 0, "text")],
    ),
    "a numbered list": ("1. one\n2. two\n# yes", [("list", 0, "1. one\n2. two"), ("heading", 1, "# yes")]),
    "a quotation": ("> # quoted\n> text", [("paragraph", 0, "> # quoted\n> text")]),
    "a comment": (
        "<!--\n# no\n\n# no\n-->\n\n# yes",
        [("paragraph", 0, "<!--\n# no\n\n# no\n-->"), ("heading", 1, "# yes")],
    ),
    "front matter": (
        "---\ntitle: T\n# comment\n---\n# yes",
        [("code", 0, "---\ntitle: T\n# comment\n---"), ("heading", 1, "# yes")],
    ),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=list(CASES))
def test_blocks_are_those_of_markdown(tmp_path: Path, text: str, expected: list[tuple[str, int, str]]) -> None:
    assert blocks(tmp_path / "a.md", text) == expected


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_headings_code_and_tables_are_those_that_a_parser_of_commonmark_finds(path: Path) -> None:
    tokens = [each for each in MarkdownIt("commonmark").enable("table").parse(path.read_text()) if each.level == 0]

    found = [(block.kind, block.level) for unit in units(path) for block in unit.blocks]

    headings = [int(each.tag[1]) for each in tokens if each.type == "heading_open"]
    assert [level for kind, level in found if kind == "heading"] == headings
    assert sum(kind == "table" for kind, _ in found) == sum(each.type == "table_open" for each in tokens)
    assert sum(kind == "code" for kind, _ in found) == sum(each.type in ("fence", "code_block") for each in tokens)


LINES = st.sampled_from(
    [
        "# a",
        "## b",
        "text",
        "",
        "",
        "- item",
        "  more",
        "1. one",
        "```",
        "~~~",
        "    code",
        "| a | b |",
        "|---|---|",
        "===",
        "---",
        "> quote",
        "***",
        "<!-- c",
        "-->",
    ]
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(LINES, max_size=25))
def test_blocks_are_in_order_and_cover_all_lines(tmp_path: Path, lines: list[str]) -> None:
    for unit in units(tmp_path / "a.md", "\n".join(lines)):
        place = 0
        for block in unit.blocks:
            assert place <= block.start < block.end <= len(unit.text)
            assert not unit.text[place : block.start].strip()
            place = block.end
        assert not unit.text[place:].strip()


def test_the_text_stays_as_it_is_written(tmp_path: Path) -> None:
    text = "# A *title*\n\nSome **bold** [link](https://example.com) &amp; `code`.\n\n| a|b |\n|--|--|\n|1 | 2|"

    assert [unit.text for unit in units(tmp_path / "a.md", text)] == [text]


def test_a_long_file_is_divided_before_headings(tmp_path: Path) -> None:
    sections = [f"# Section {number}\n\n" + "A sentence of this section. " * 500 for number in range(30)]

    found = units(tmp_path / "a.md", "\n\n".join(sections))

    assert len(found) > 4
    assert all(unit.text.startswith("# Section") for unit in found)
    assert all(len(unit.text) <= 2 * PORTION for unit in found)
    for first in (2, len(found)):
        assert units(tmp_path / "a.md", first=first) == found[first - 1 :]


def test_a_code_block_that_is_longer_than_a_portion_stays_code(tmp_path: Path) -> None:
    code = "# a comment, no heading\n" * 12_000

    found = units(tmp_path / "a.md", f"# Title\n\n```\n{code}```\n\n# End\n")

    kinds = [block.kind for unit in found for block in unit.blocks]
    assert len(found) > 2
    assert kinds == ["heading", *["code"] * (len(kinds) - 2), "heading"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('---\nlayout: page\ntitle: "The Guide"\n---\n# Heading', "The Guide"),
        ("+++\ntitle = 'The Guide'\n+++\n", "The Guide"),
        ("text\n\n# The *Guide* to [tea](a.md) #\n", "The Guide to tea"),
        ("The Guide\n=====\n", "The Guide"),
        ("## Not a title\n\n# Later", None),
        ("Only text.", None),
    ],
)
def test_the_title_is_in_the_front_matter_or_the_first_heading(tmp_path: Path, text: str, title: str | None) -> None:
    assert units(tmp_path / "a.md", text)[0].title == title
