"""Presentations become a unit for each slide: title, text, lists, tables, charts, diagrams, notes and comments."""

from pathlib import Path

import pytest

from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.parsing.limits import ParseLimits
from holdfast.knowledge.parsing.pptx import parse
from tests.knowledge.parsing.office_files import ROOT, A, C, ap, core, package, pptx, shape, slide, zipped

BULLET = '<a:buChar char="•"/>'
NUMBER = '<a:buAutoNum type="arabicPeriod"/>'


def item(text: str, bullet: str, level: int = 0) -> str:
    return ap(text, f'<a:pPr lvl="{level}">{bullet}</a:pPr>')


def only(path: Path) -> str:
    (unit,) = parse(path)
    return unit.text


@pytest.mark.req("KNOW-01")
def test_a_slide_is_a_unit_with_its_number(tmp_path: Path) -> None:
    slides = [slide(shape("Body") + shape("First", kind="title")), slide(shape("Only text")), slide("")]
    path = pptx(tmp_path / "a.pptx", slides)

    units = list(parse(path))

    assert [unit.text for unit in units] == ["# First\n\nBody", "Only text", ""]
    assert [(unit.number, unit.page, unit.pages) for unit in units] == [(1, 1, 3), (2, 2, None), (3, 3, None)]
    assert units[0].blocks[0].kind == "heading"
    for first in range(1, 5):
        assert list(parse(path, first=first)) == units[first - 1 :]


def test_lists_have_bullets_numbers_and_levels(tmp_path: Path) -> None:
    lines = [
        "Agenda",
        *(item("one", BULLET), item("inner", BULLET, 1), item("two", BULLET)),
        *(item("first", NUMBER), item("second", NUMBER), ap("plain", "<a:pPr><a:buNone/></a:pPr>")),
        *(item("anew", NUMBER), item("", NUMBER)),
    ]

    text = only(pptx(tmp_path / "a.pptx", [slide(shape(lines))]))

    assert text == "Agenda\n\n- one\n    - inner\n- two\n1. first\n2. second\n\nplain\n\n1. anew"


def test_bullets_are_inherited_from_layout_and_master(tmp_path: Path) -> None:
    master = (
        f"<p:sldMaster {ROOT}><p:cSld><p:spTree>{shape('m', kind='body')}</p:spTree></p:cSld><p:txStyles><p:bodyStyle>"
        f"<a:lvl1pPr>{BULLET}</a:lvl1pPr></p:bodyStyle></p:txStyles></p:sldMaster>"
    )
    plain = shape("l", kind="body", index="7").replace(
        "<a:bodyPr/>", "<a:bodyPr/><a:lstStyle><a:lvl1pPr><a:buNone/></a:lvl1pPr></a:lstStyle>"
    )
    layout = f"<p:sldLayout {ROOT}><p:cSld><p:spTree>{plain}{shape('l', index='1')}</p:spTree></p:cSld></p:sldLayout>"
    shapes = shape("Title", kind="ctrTitle") + shape("item", index="1") + shape("text", kind="body", index="7")
    links = {
        "ppt/slides/slide1.xml": [("l", "slideLayout", "../slideLayouts/l.xml")],
        "ppt/slideLayouts/l.xml": [("m", "slideMaster", "../slideMasters/m.xml")],
    }
    parts = {"ppt/slideLayouts/l.xml": layout, "ppt/slideMasters/m.xml": master}

    text = only(pptx(tmp_path / "a.pptx", [slide(shapes + shape("free"))], links, parts))

    assert text == "# Title\n\n- item\n\ntext\n\nfree"


def test_groups_and_alternatives_are_opened_and_furniture_is_not(tmp_path: Path) -> None:
    alternative = (
        f"<mc:AlternateContent><mc:Choice Requires='x'><p:pic/></mc:Choice><mc:Fallback>{shape('fallback')}"
        f"</mc:Fallback></mc:AlternateContent>"
    )
    shapes = (
        f"<p:grpSp>{shape('in a group')}<p:grpSp>{shape('deeper')}</p:grpSp></p:grpSp>{alternative}"
        + shape("3", kind="sldNum")
        + shape("Confidential", kind="ftr")
    )

    assert only(pptx(tmp_path / "a.pptx", [slide(shapes)])) == "in a group\n\ndeeper\n\nfallback"


def graphic(inner: str) -> str:
    return f"<p:graphicFrame><a:graphic><a:graphicData>{inner}</a:graphicData></a:graphic></p:graphicFrame>"


def test_tables_repeat_merged_cells(tmp_path: Path) -> None:
    def tc(text: str, attributes: str = "") -> str:
        return f"<a:tc {attributes}><a:txBody>{ap(text)}</a:txBody></a:tc>"

    rows = [
        tc("Name") + tc("Both", 'gridSpan="2"') + tc("", 'hMerge="1"'),
        tc("A", 'rowSpan="2"') + tc("1") + tc("2"),
        tc("", 'vMerge="1"') + tc("3|4") + tc(""),
    ]
    table = f"<a:tbl>{''.join(f'<a:tr>{row}</a:tr>' for row in rows)}</a:tbl>"

    text = only(pptx(tmp_path / "a.pptx", [slide(graphic(table))]))

    assert text == "| Name | Both | Both |\n| --- | --- | --- |\n| A | 1 | 2 |\n| A | 3\\|4 |  |"


def test_charts_and_diagrams_show_their_text(tmp_path: Path) -> None:
    chart = (
        f'<c:chartSpace xmlns:c="{C}" xmlns:a="{A}"><c:chart><c:plotArea><c:pieChart><c:ser>'
        '<c:tx><c:v>Share</c:v></c:tx><c:cat><c:strLit><c:pt idx="0"><c:v>North</c:v></c:pt></c:strLit></c:cat>'
        '<c:val><c:numLit><c:pt idx="0"><c:v>0.25</c:v></c:pt></c:numLit></c:val>'
        "</c:ser></c:pieChart></c:plotArea></c:chart></c:chartSpace>"
    )
    points = "".join(f"<dgm:pt><dgm:t>{ap(text)}</dgm:t></dgm:pt>" for text in ("Plan", "", "Build"))
    diagram = f"<dgm:dataModel {ROOT}><dgm:ptLst>{points}</dgm:ptLst></dgm:dataModel>"
    shapes = graphic('<c:chart r:id="c"/>') + graphic('<dgm:relIds r:dm="d"/>') + graphic('<c:chart r:id="gone"/>')
    links = {"ppt/slides/slide1.xml": [("c", "chart", "../charts/c.xml"), ("d", "diagramData", "../diagrams/d.xml")]}
    parts = {"ppt/charts/c.xml": chart, "ppt/diagrams/d.xml": diagram}

    text = only(pptx(tmp_path / "a.pptx", [slide(shapes)], links, parts))

    assert text == "Pie chart\n\n|  | Share |\n| --- | --- |\n| North | 0.25 |\n\n- Plan\n- Build"


def test_notes_and_comments_follow_the_slide(tmp_path: Path) -> None:
    notes = slide(shape("1", kind="sldNum") + shape(["Say this.", "Then that."], kind="body", index="1"))
    comments = (
        f'<p:cmLst {ROOT}><p:cm authorId="0" dt="2026-01-02T03:04:05"><p:text>Is it so?</p:text></p:cm></p:cmLst>'
    )
    authors = f'<p:cmAuthorLst {ROOT}><p:cmAuthor id="0" name="Ann Lee" initials="AL"/></p:cmAuthorLst>'
    links = {
        "ppt/presentation.xml": [("s1", "slide", "slides/slide1.xml"), ("a", "commentAuthors", "authors.xml")],
        "ppt/slides/slide1.xml": [("n", "notesSlide", "../notes/n.xml"), ("c", "comments", "../comments/c.xml")],
    }
    parts = {"ppt/notes/n.xml": notes, "ppt/comments/c.xml": comments, "ppt/authors.xml": authors}

    text = only(pptx(tmp_path / "a.pptx", [slide(shape("Text"))], links, parts))

    assert text == "Text\n\nNotes: Say this.\nThen that.\n\nComment (Ann Lee (AL), 2026-01-02T03:04:05): Is it so?"


def test_the_title_of_the_document_is_in_the_first_unit(tmp_path: Path) -> None:
    main = f'<p:presentation {ROOT}><p:sldIdLst><p:sldId r:id="s1"/></p:sldIdLst></p:presentation>'
    parts = {"ppt/presentation.xml": main, "ppt/slides/slide1.xml": slide(""), "docProps/core.xml": core("Plan")}
    links = {"ppt/presentation.xml": [("s1", "slide", "slides/slide1.xml")]}
    path = zipped(tmp_path / "a.pptx", package("ppt/presentation.xml", parts, links))

    assert next(parse(path)).title == "Plan"


def test_slides_that_are_skipped_are_not_read(tmp_path: Path) -> None:
    path = pptx(tmp_path / "a.pptx", [slide(shape("One")), "<p:broken", slide(shape("Three"))])

    assert [unit.text for unit in parse(path, first=3)] == ["Three"]
    with pytest.raises(ParseError, match="not well-formed"):
        list(parse(path))


def test_a_presentation_with_too_many_slides_is_refused(tmp_path: Path) -> None:
    path = pptx(tmp_path / "a.pptx", [slide(shape("x"))] * 5)

    with pytest.raises(ParseError) as caught:
        list(parse(path, limits=ParseLimits(units=4)))

    assert caught.value.code == "too_large"
