from itertools import pairwise
from pathlib import Path

import pytest

from holdfast.knowledge.parsing import pdf
from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.parsing.limits import ParseLimits
from holdfast.knowledge.parsing.pdf_layout import PageLine, Profile, lay_out
from holdfast.knowledge.parsing.units import Unit
from tests.knowledge.parsing.pdf_writer import Text, page_of, write_pdf

pytestmark = pytest.mark.req("KNOW-01")

PROSE = (
    "The committee decides about tea and coffee, and it meets once\na month in the large room of the old "
    "house. Its members come\nfrom all parts of the town, and each of them has one vote."
)
PROSE_TEXT = PROSE.replace("\n", " ")


def units(path: Path, first: int = 1, limits: ParseLimits | None = None) -> list[Unit]:
    return list(pdf.parse(path, first=first, limits=limits or ParseLimits()))


def blocks(unit: Unit) -> list[tuple[str, int, str]]:
    return [(block.kind, block.level, unit.text[block.start : block.end]) for block in unit.blocks]


def test_a_page_has_its_headings_paragraphs_and_lists(tmp_path: Path) -> None:
    page = page_of("# Rules", PROSE, "## About tea", PROSE, "1. Tea is free.\n2. Coffee is not.", PROSE)
    path = write_pdf(tmp_path / "a.pdf", [page])

    (unit,) = units(path)

    assert blocks(unit) == [
        ("heading", 1, "# Rules"),
        ("paragraph", 0, PROSE_TEXT),
        ("heading", 2, "## About tea"),
        ("paragraph", 0, PROSE_TEXT),
        ("list", 0, "1. Tea is free.\n2. Coffee is not."),
        ("paragraph", 0, PROSE_TEXT),
    ]


def test_pages_have_their_numbers_and_the_first_the_title(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "a.pdf", [page_of(PROSE), [], page_of("End.")], title="The (small) Rules")

    found = units(path)

    assert [(unit.number, unit.page, unit.total) for unit in found] == [(1, 1, 3), (2, 2, 3), (3, 3, 3)]
    assert [(unit.pages, unit.title) for unit in found] == [(3, "The (small) Rules"), (None, None), (None, None)]
    assert [unit.text for unit in found] == [PROSE_TEXT, "", "End."]


@pytest.mark.parametrize("title", ["untitled", "Microsoft Word - Document1", "report-final.docx", " "])
def test_a_title_that_a_program_made_up_is_ignored(tmp_path: Path, title: str) -> None:
    assert units(write_pdf(tmp_path / "a.pdf", [page_of(PROSE)], title=title))[0].title is None


def test_headers_and_footers_are_left_out(tmp_path: Path) -> None:
    pages = [
        [Text("Annual Report 2026", 780, size=8), *page_of(f"Page of {name}.", PROSE), Text(f"Page {place} of 8", 20)]
        for place, name in enumerate(["Ann", "Bob", "Eve", "Kim", "Lee", "Max", "Pat", "Zoe"], 1)
    ]

    found = units(write_pdf(tmp_path / "a.pdf", pages))

    assert [unit.text for unit in found] == [
        f"Page of {name}.\n\n{PROSE_TEXT}" for name in ("Ann", "Bob", "Eve", "Kim", "Lee", "Max", "Pat", "Zoe")
    ]


def test_lines_that_repeat_inside_of_pages_are_kept(tmp_path: Path) -> None:
    pages = [page_of("Name: Ann\nCity: Rome\nName: Bob\nCity: Rome") for _ in range(8)]

    assert all(unit.text.count("City: Rome") == 2 for unit in units(write_pdf(tmp_path / "a.pdf", pages)))


@pytest.mark.parametrize("first", [2, 17, 40])
def test_a_page_is_the_same_from_wherever_a_read_begins(tmp_path: Path, first: int) -> None:
    pages = [
        [Text("Annual Report", 780, size=8), *page_of(f"# Chapter {number}", PROSE), Text(f"{number}", 20)]
        for number in range(1, 61)
    ]
    path = write_pdf(tmp_path / "a.pdf", pages, title="Report")

    assert units(path, first) == units(path)[first - 1 :]


def test_titles_of_the_table_of_contents_are_headings(tmp_path: Path) -> None:
    path = write_pdf(
        tmp_path / "a.pdf", [page_of("About tea", PROSE), page_of("About coffee", PROSE)], bookmarks=[("About  Tea", 1)]
    )

    first, second = units(path)

    assert blocks(first)[0] == ("heading", 1, "# About tea")
    assert blocks(second)[0] == ("paragraph", 0, "About coffee")


def test_bold_lines_are_headings(tmp_path: Path) -> None:
    page = [Text("About tea", 780, bold=True), *page_of(PROSE)]

    assert blocks(units(write_pdf(tmp_path / "a.pdf", [page]))[0])[0] == ("heading", 4, "#### About tea")


def test_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    left = page_of("The left column is\nfilled with words of\nthe first part, and")
    right = [
        Text(text, line.y, x=330)
        for line, text in zip(left, ("goes on in the right", "column which is near", "and then it ends."), strict=True)
    ]

    (unit,) = units(write_pdf(tmp_path / "a.pdf", [[*left, *right]]))

    assert unit.text == (
        "The left column is filled with words of the first part, and "
        "goes on in the right column which is near and then it ends."
    )


NOTHING: list[Text] = []


@pytest.mark.parametrize(
    ("pages", "encrypted", "code", "why"),
    [
        ([NOTHING] * 3, False, "no_text", "it has no text: scanned images need OCR, which is not built in"),
        ([[Text("a", 700)]], True, "encrypted", "it is encrypted with a password"),
        ([[Text("a", 700)]] * 4, False, "too_large", "it has 4 pages, more than 3"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(
    tmp_path: Path, pages: list[list[Text]], encrypted: bool, code: str, why: str
) -> None:
    path = write_pdf(tmp_path / "a.pdf", pages, encrypted=encrypted)

    with pytest.raises(ParseError) as caught:
        units(path, limits=ParseLimits(units=3))

    assert (caught.value.code, caught.value.why) == (code, why)
    assert caught.value.what == "a.pdf cannot be read"


def test_a_file_whose_first_pages_have_text_may_end_without(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "a.pdf", [page_of("Text."), [], []])

    assert [unit.text for unit in units(path, 2)] == ["", ""]


@pytest.mark.parametrize("size", [0, 20, 400, 900])
def test_a_file_that_was_cut_is_damaged(tmp_path: Path, size: int) -> None:
    path = write_pdf(tmp_path / "a.pdf", [page_of(PROSE)] * 10)
    path.write_bytes(path.read_bytes()[:size])

    with pytest.raises(ParseError) as caught:
        units(path)

    assert caught.value.code == "damaged"


# Layout: lines in, text out.


def lines(*texts: str, size: float = 10, width: float = 5) -> list[PageLine]:
    """Lines below each other, as wide as their text is long. A line that begins with a blank is indented."""
    found: list[PageLine] = []
    for place, text in enumerate(texts):
        left = 72 + (2 * size if text.startswith(" ") else 0)
        y = 700 - 12 * place
        found.append(PageLine(text.strip(), left, left + width * len(text.strip()), y, y, size))
    return found


def laid_out(*found: PageLine, body: float = 10) -> str:
    return lay_out(found, Profile(body), 1)[0]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("a committee of mem-", "bers, who decide it"), "a committee of members, who decide it"),
        (
            ("the long-term plan is long-", "term, which is to say long"),
            "the long-term plan is long-term, which is to say long",
        ),
        (("he asked about the North-", "South line of the town"), "he asked about the North- South line of the town"),
        (
            (
                "\u6211\u4eec\u5728\u540e\u53f0\u8fd0\u884c\u7cfb\u7edf\u5b83",
                "\u4f1a\u628a\u6587\u4ef6\u5206\u6210\u5c0f\u5757\u4e86\u3002",
            ),
            "\u6211\u4eec\u5728\u540e\u53f0\u8fd0\u884c\u7cfb\u7edf\u5b83\u4f1a\u628a\u6587\u4ef6\u5206\u6210\u5c0f\u5757\u4e86\u3002",
        ),
        (
            ("This is the first sentence.", " This begins a paragraph that is long."),
            "This is the first sentence.\n\nThis begins a paragraph that is long.",
        ),
        (("short", "lines of", "an address which is long here"), "short\nlines of\nan address which is long here"),
    ],
)
def test_lines_are_joined_to_paragraphs(texts: tuple[str, ...], expected: str) -> None:
    assert laid_out(*lines(*texts)) == expected


def test_a_gap_begins_a_paragraph() -> None:
    first = lines("one line of a paragraph here", "and one more of the same, yes")
    second = [PageLine("after the gap", 72, 140, 640, 640, 10)]

    assert laid_out(*first, *second) == "one line of a paragraph here and one more of the same, yes\n\nafter the gap"


def test_blocks_are_where_their_text_is() -> None:
    heading = PageLine("Title", 72, 120, 720, 720, 20)
    text, found = lay_out([heading, *lines("one line of text here", "- an item", "- another")], Profile(10), 1)

    assert [(block.kind, text[block.start : block.end]) for block in found] == [
        ("heading", "# Title"),
        ("paragraph", "one line of text here"),
        ("list", "- an item\n- another"),
    ]
    assert all(above.end + 2 == below.start for above, below in pairwise(found))
