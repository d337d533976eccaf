import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.conversations.sections import MarkdownSection, delete_section, find, join_texts, replace_section, sections
from holdfast.core.errors import InvalidInput, NotFound

pytestmark = pytest.mark.req("NOTE-02")

TASKS = "intro\n\n# Ann\n\ntea\n\n## Tasks\n\n- call\n\n### Done\n\nx\n\n## Trips\n\nOslo\n\n# Bob\n\ncoffee\n"

HEADERS = {
    "# One": ["# One"],
    "###### Six": ["###### Six"],
    "####### Seven": [],
    "   ## Indented": ["## Indented"],
    "    # Code": [],
    "\t# Code": [],
    "# Closed #": ["# Closed"],
    "## Closed ####   ": ["## Closed"],
    "# C#": ["# C#"],
    "#NoSpace": [],
    "#\tTab": ["# Tab"],
    "#": ["#"],
    "# *Bold* and `code`": ["# *Bold* and `code`"],
    "\\# Escaped": [],
    "Over\n===": ["# Over"],
    "Over\n---": ["## Over"],
    "Over\nlines  \n=": ["# Over lines"],
    "\n---": [],
    "- item\n---": [],
    "```\n# code\n```\n# Real": ["# Real"],
    "````\n```\n# code\n````\n# Real": ["# Real"],
    "```\n~~~\n# code\n```\n# Real": ["# Real"],
    "~~~ lang ```\n# code\n~~~~\n# Real": ["# Real"],
    "```\n    ```\n# code\n   ```\n# Real": ["# Real"],
    "``` not ` a fence\n# Real": ["# Real"],
    "   ```\n# code\n```\n# Real": ["# Real"],
    "```\n# never closed\n\n# code": [],
    "> # Quoted\n\n- # Listed\n\n# Real": ["# Real"],
    "<!--\n# comment\n-->\n# Real": ["# Real"],
    "# Mac\rtext\r## Old\r": ["# Mac", "## Old"],
    "# Windows\r\n\r\nUnder\r\n-----\r\n": ["# Windows", "## Under"],
    "# nul \0 half \ud83d": ["# nul \0 half \ud83d"],
    "# a\u2028b\x0bc\x85d\n# e": ["# a\u2028b\x0bc\x85d", "# e"],
    "": [],
}

# Lines that mean one thing or another by what stands around them.
OPEN = ["```", "~~~~", "- item", "  - inner", "1. one", "> quoted", "<!--", "-->", "<div>", "[a]: /b"]
PLAIN = [*OPEN, "text", "more text  ", "", "   ", "    code", "\tA", "### C"]
HIGHER = ["# A", "## B", "## b ##", "  # D", "===", "---"]
TARGETS = [["# Target"], ["  ## Target ##"], ["", "Target", "---"], ["", "Target", "="]]

line_ends = st.sampled_from(["\n", "\r\n", "\r"])
lines = st.lists(st.sampled_from(PLAIN + HIGHER), max_size=8)


@st.composite
def texts_with_a_target(draw: st.DrawFn) -> str:
    """A text with one section called Target, unless what is left open before its header takes it in."""
    text = [*draw(lines), *draw(st.sampled_from(TARGETS)), *draw(lines), *draw(st.sampled_from([[""], []]))]
    return draw(line_ends).join(text)


@st.composite
def contents(draw: st.DrawFn) -> str:
    """A text that could stand below any Target."""
    return draw(line_ends).join(draw(st.lists(st.sampled_from(PLAIN), max_size=8)))


def words(text: str) -> str:
    return text.strip(" \t\r\n")


def target(text: str) -> MarkdownSection:
    """The section called Target."""
    found = [section for section in sections(text) if section.title == "Target"]
    assume(found)
    return found[0]


@pytest.mark.parametrize(("text", "headers"), HEADERS.items())
def test_a_header_is_what_commonmark_calls_one(text: str, headers: list[str]) -> None:
    found = sections(text)

    assert [section.header for section in found] == headers


def test_a_section_ends_before_the_next_header_of_its_level_or_above() -> None:
    ends = {section.title: TASKS[section.end :].partition("\n")[0] for section in sections(TASKS)}

    assert ends == {"Ann": "# Bob", "Tasks": "## Trips", "Done": "## Trips", "Trips": "# Bob", "Bob": ""}


@pytest.mark.parametrize("header", ["Tasks", "## Tasks", "  Tasks ", "## Tasks ##", "tasks", "## TASKS", "Tasks\n---"])
def test_a_header_is_named_with_its_level_or_without(header: str) -> None:
    assert find(TASKS, header).line == 7


def test_upper_and_lower_case_matter_where_both_are_there() -> None:
    assert find("# Tea\n# tea\n", "tea").line == 2


@pytest.mark.parametrize("header", ["Nope", "# Tasks", "#Tasks", "Task"])
def test_a_header_that_is_not_there_is_an_error_that_lists_those_there_are(header: str) -> None:
    with pytest.raises(NotFound, match="# Ann, ## Tasks, ### Done, ## Trips, # Bob") as refused:
        find(TASKS, header)

    assert refused.value.details["headers"] == ["# Ann", "## Tasks", "### Done", "## Trips", "# Bob"]


def test_the_list_of_headers_in_an_error_is_bounded() -> None:
    with pytest.raises(NotFound, match="and 950 more") as refused:
        find("# A\n" * 1000, "B")

    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("text", ["# A\n\n# A\n", "# A\n\nA\n===\n", "# a\n\n## B\n\n# A\n# a"])
def test_a_name_that_several_headers_have_is_refused_with_their_lines(text: str) -> None:
    last = max(section.line for section in sections(text) if section.title.lower() == "a")

    with pytest.raises(InvalidInput, match=f"line 1: # [aA], line {last}: # [aA]"):
        find(text, "a")


def test_the_level_tells_headers_of_one_name_apart() -> None:
    text = "# A\n\n## A\n"

    with pytest.raises(InvalidInput, match="Include the leading #s"):
        find(text, "A")

    assert [find(text, "# A").line, find(text, "## A").line] == [1, 3]


@pytest.mark.parametrize("header", ["", " \n"])
def test_an_empty_header_is_refused(header: str) -> None:
    with pytest.raises(InvalidInput, match="the header is empty"):
        find(TASKS, header)


@pytest.mark.parametrize(
    ("text", "header", "left"),
    [
        (TASKS, "Tasks", "intro\n\n# Ann\n\ntea\n\n## Trips\n\nOslo\n\n# Bob\n\ncoffee\n"),
        (TASKS, "Ann", "intro\n\n# Bob\n\ncoffee\n"),
        (TASKS, "Bob", TASKS.partition("# Bob")[0]),
        ("# A\r\nx\r\n# B\r\ny\r\n", "A", "# B\r\ny\r\n"),
        ("# A", "A", ""),
        ("a\r\n# A\r\n\r\nB\r\n===", "A", "a\r\n\r\nB\r\n==="),
    ],
)
def test_a_section_is_deleted_with_those_inside_it(text: str, header: str, left: str) -> None:
    assert delete_section(text, header) == left


@pytest.mark.parametrize(
    ("text", "content", "changed"),
    [
        ("# A\n\nold\n\n## In\n\nx\n\n# B\n", "new", "# A\n\nnew\n\n# B\n"),
        ("# A\nold\n# B\n", "new\n", "# A\nnew\n\n# B\n"),
        ("# A\r\n\r\nold\r\n", "new", "# A\r\n\r\nnew\r\n"),
        ("# A", "new", "# A\nnew"),
        ("# A #\nold\n", "", "# A #\n"),
        ("A\n===\n\nold\n# B", "    code", "A\n===\n\n    code\n\n# B"),
        ("# A\n\nold\n\n# B\n", "# A\n\nnew\n\n## In\n\nx", "# A\n\nnew\n\n## In\n\nx\n\n# B\n"),
        ("# A\n\nold\n\n# B\n", "\n# a #\nnew", "# a #\nnew\n\n# B\n"),
        ("x\n# A\n", "A\n===\nnew", "x\n\nA\n===\nnew\n"),
        ("# A\n\nold\n", "## A\n\nnew", "# A\n\n## A\n\nnew\n"),
        ("# A\nold\n# B\n", "```\n# code\n```", "# A\n```\n# code\n```\n\n# B\n"),
    ],
)
def test_content_replaces_what_is_below_the_header(text: str, content: str, changed: str) -> None:
    assert replace_section(text, "A", content) == changed


@pytest.mark.parametrize("content", ["```\ncode", "<!-- open", "~~~~\n~~~"])
def test_content_that_would_swallow_the_sections_after_it_is_refused(content: str) -> None:
    with pytest.raises(InvalidInput, match="'# B' would no longer be a header"):
        replace_section("# A\n\nold\n\n# B\n", "A", content)

    assert replace_section("# B\n\n# A\n", "A", content).endswith(content + "\n")


@pytest.mark.parametrize("text", ["- item\n\n# A\n\n  # B\n", "# B\n\n- item\n\n# A\n\n  # B\n"])
def test_a_section_is_not_deleted_where_the_next_one_would_become_part_of_a_list(text: str) -> None:
    with pytest.raises(InvalidInput, match="'# B' would no longer be a header"):
        delete_section(text, "A")


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ("", "b", "b"),
        (" \n\n", "b", "b"),
        ("a", "", "a"),
        ("a", "b", "a\n\nb"),
        ("a\n", "\n\nb\n", "a\n\nb\n"),
        ("a\r\n\r\n\r\n", "b", "a\r\n\r\nb"),
        ("a", "\n    code", "a\n\n    code"),
    ],
)
def test_two_texts_are_joined_by_one_blank_line(first: str, second: str, both: str) -> None:
    assert join_texts(first, second) == both


@given(texts_with_a_target())
def test_deleting_a_section_never_touches_what_is_outside_of_it(text: str) -> None:
    section = target(text)
    before, after = text[: section.start], text[section.end :]

    try:
        left = delete_section(text, "Target")
    except InvalidInput:  # what follows would become something else
        return

    outside = [other.header for other in sections(text) if not section.start <= other.start < section.end]
    assert [other.header for other in sections(left)] == outside
    assert left.startswith(before)
    assert left.endswith(after)
    assert re.fullmatch(r"(\r\n|\r|\n)?", left[len(before) : len(left) - len(after)])


@given(texts_with_a_target(), contents())
def test_what_replaces_a_section_is_read_back_and_all_else_is_untouched(text: str, content: str) -> None:
    section = target(text)

    try:
        changed = replace_section(text, "Target", content)
    except InvalidInput:  # what follows would become something else
        return

    same = target(changed)
    assert same.header == section.header
    assert words(changed[same.body : same.end]) == words(content)
    assert changed[: same.start] == text[: section.start]
    assert changed[same.end :] == text[section.end :]


@given(texts_with_a_target())
def test_a_section_replaced_by_itself_stays_the_same(text: str) -> None:
    section = target(text)
    whole = text[section.start : section.end]

    changed = replace_section(text, "Target", whole)

    same = target(changed)
    assert words(changed[same.start : same.end]) == words(whole)
    assert changed[same.end :] == text[section.end :]
