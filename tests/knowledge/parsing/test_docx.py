"""Word documents become Markdown: headings, lists, tables, equations, notes, in their order."""

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.knowledge.parsing.docx import parse
from holdfast.knowledge.parsing.docx.list_numbers import formatted
from holdfast.knowledge.parsing.units import Unit
from tests.knowledge.parsing.office_files import (
    ROOT,
    A,
    C,
    cell,
    core,
    document_parts,
    docx,
    numbered,
    p,
    package,
    style,
    tbl,
    zipped,
)

LEVEL = '<w:lvl w:ilvl="{at}"><w:start w:val="{start}"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/></w:lvl>'


def levels(*shapes: tuple[str, str], start: int = 1) -> str:
    return "".join(LEVEL.format(at=at, start=start, form=form, text=text) for at, (form, text) in enumerate(shapes))


def numbering(lists: dict[int, str], extra: str = "") -> str:
    """A list for each number, with its levels."""
    shapes = "".join(f'<w:abstractNum w:abstractNumId="{id}">{inner}</w:abstractNum>' for id, inner in lists.items())
    used = "".join(f'<w:num w:numId="{id}"><w:abstractNumId w:val="{id}"/></w:num>' for id in lists)
    return shapes + used + extra


def text_of(path: Path) -> str:
    units = list(parse(path))
    assert len(units) == 1
    check_blocks(units[0])
    return units[0].text


def check_blocks(unit: Unit) -> None:
    """Blocks cover all of the text but blank lines, in order."""
    at = 0
    for block in unit.blocks:
        assert not unit.text[at : block.start].strip()
        assert unit.text[block.start : block.end].strip() == unit.text[block.start : block.end].strip("\n").strip()
        at = block.end
    assert not unit.text[at:].strip()


HEADINGS = "".join(
    [
        style("Title", "Title"),
        style("Heading1", "heading 1", '<w:pPr><w:outlineLvl w:val="0"/></w:pPr>'),
        style("berschrift2", "heading 2"),
        style("Mine", "My Chapter", based_on="Heading1"),
        style("Titre3", "Titre 3"),
        style("NotAHeading", "Plain Again", '<w:pPr><w:outlineLvl w:val="9"/></w:pPr>', based_on="Heading1"),
    ]
)


@pytest.mark.req("KNOW-01")
def test_headings_come_from_names_levels_and_inheritance(tmp_path: Path) -> None:
    body = "".join(
        [
            p("One", style="Heading1"),
            p("Two", style="berschrift2"),
            p("Derived", style="Mine"),
            p("Localised", style="Titre3"),
            p("Direct", properties='<w:outlineLvl w:val="3"/>'),
            p("Text", style="NotAHeading"),
            p("", style="Heading1"),
        ]
    )

    text = text_of(docx(tmp_path / "a.docx", body, styles=HEADINGS))

    assert text == "# One\n\n## Two\n\n# Derived\n\n### Localised\n\n#### Direct\n\nText"


def test_headings_are_below_the_title(tmp_path: Path) -> None:
    path = docx(tmp_path / "a.docx", p("Name", style="Title") + p("One", style="Heading1"), styles=HEADINGS)

    unit = next(parse(path))

    assert unit.text == "# Name\n\n## One"
    assert [(block.kind, block.level) for block in unit.blocks] == [("heading", 1), ("heading", 2)]


@pytest.mark.req("KNOW-01")
def test_lists_nest_and_numbers_go_on_after_other_text(tmp_path: Path) -> None:
    shapes = numbering(
        {1: levels(("decimal", "%1."), ("decimal", "%1.%2"), ("lowerLetter", "%3)")), 2: levels(("bullet", "•"))}
    )
    body = "".join(
        [
            *(numbered("one", 1), numbered("inner", 1, 1), numbered("deep", 1, 2), numbered("deeper", 1, 2)),
            *(numbered("two", 1), numbered("inner again", 1, 1)),
            *(p("Between."), numbered("bullet", 2), p(""), numbered("three", 1)),
        ]
    )

    text = text_of(docx(tmp_path / "a.docx", body, numbering=shapes))

    assert text == (
        "1. one\n    - 1.1 inner\n        - a) deep\n        - b) deeper\n2. two\n    - 2.1 inner again\n\n"
        "Between.\n\n- bullet\n3. three"
    )


def test_a_list_can_start_anew_and_headings_have_their_numbers(tmp_path: Path) -> None:
    again = (
        '<w:num w:numId="9"><w:abstractNumId w:val="1"/>'
        '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride></w:num>'
    )
    shapes = numbering({1: levels(("upperRoman", "%1."), ("decimal", "%1.%2"))}, again)
    numbered_heading = style(
        "H1", "heading 1", '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr><w:outlineLvl w:val="0"/></w:pPr>'
    )
    body = p("Scope", style="H1") + p("Terms", style="H1") + numbered("fifth", 9) + numbered("sixth", 9)

    text = text_of(docx(tmp_path / "a.docx", body, numbering=shapes, styles=numbered_heading))

    assert text == "# I. Scope\n\n# II. Terms\n\n- V. fifth\n- VI. sixth"


@pytest.mark.parametrize(
    ("form", "number", "shown"),
    [
        ("lowerLetter", 27, "aa"),
        ("upperRoman", 1994, "MCMXCIV"),
        ("decimalZero", 7, "07"),
        ("chineseCounting", 21, "二十一"),
        ("chineseCounting", 10, "十"),
        ("decimal", 12, "12"),
    ],
)
def test_numbers_have_the_formats_of_word(form: str, number: int, shown: str) -> None:
    assert formatted(number, form) == shown


@pytest.mark.req("KNOW-01")
def test_tables_repeat_merged_cells_and_escape_pipes(tmp_path: Path) -> None:
    down, below = '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    table = tbl(
        [
            ["Name", cell("Both", properties='<w:gridSpan w:val="2"/>')],
            [cell("A|B", properties=down), "x", "first\nline"],
            [cell(properties=below), cell("two", "paragraphs"), ""],
        ]
    )

    text = text_of(docx(tmp_path / "a.docx", p("Before") + table + p("After")))

    assert text == (
        "Before\n\n| Name | Both | Both |\n| --- | --- | --- |\n| A\\|B | x | first line |\n"
        "| A\\|B | two paragraphs |  |\n\nAfter"
    )


def test_a_table_of_one_cell_is_a_frame_and_nested_tables_stay_in_their_cell(tmp_path: Path) -> None:
    frame = tbl([[cell(p("Inside", style="Heading1"), p("Text"), tbl([["a", "b"], ["c", "d"]]))]])
    nested = tbl([["left", cell(tbl([["1", "2"], ["3", "4"]]))]])

    text = text_of(docx(tmp_path / "a.docx", frame + p("Middle") + nested, styles=HEADINGS))

    assert text == (
        "# Inside\n\nText\n\n| a | b |\n| --- | --- |\n| c | d |\n\nMiddle\n\n| left | 1 2 3 4 |\n| --- | --- |"
    )


def test_changes_are_accepted(tmp_path: Path) -> None:
    run = "<w:r><w:t>{}</w:t></w:r>"
    changed = (
        run.format("kept ")
        + f"<w:ins>{run.format('new')}</w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
        + f"<w:moveFrom>{run.format('from')}</w:moveFrom>"
    )
    joined = p("first half ", properties="<w:rPr><w:del/></w:rPr>") + p("second half")
    rows = f"<w:tbl><w:tr><w:trPr><w:del/></w:trPr>{cell('gone')}</w:tr><w:tr>{cell('a')}{cell('b')}</w:tr></w:tbl>"

    text = text_of(docx(tmp_path / "a.docx", p(inner=changed) + joined + rows))

    assert text == "kept new\n\nfirst half second half\n\n| a | b |\n| --- | --- |"


def test_a_large_first_letter_belongs_to_its_word(tmp_path: Path) -> None:
    body = p("O", properties='<w:framePr w:dropCap="drop"/>') + p("nce upon a time")

    assert text_of(docx(tmp_path / "a.docx", body)) == "Once upon a time"


def test_notes_follow_what_refers_to_them(tmp_path: Path) -> None:
    reference = '<w:r><w:footnoteReference w:id="{}"/></w:r>'
    footnotes = f'<w:footnote w:type="separator" w:id="0">{p("no")}</w:footnote>' + "".join(
        f'<w:footnote w:id="{id}">{p(text)}</w:footnote>' for id, text in ((3, "The first."), (4, "The second."))
    )
    end = f'<w:endnote w:id="3">{p("At the end.")}</w:endnote>'
    body = "".join(
        [
            p("Claim", inner=reference.format(4)),
            p("Another", inner=reference.format(3) + '<w:r><w:endnoteReference w:id="3"/></w:r>'),
            p("Unknown", inner=reference.format(99)),
        ]
    )

    text = text_of(docx(tmp_path / "a.docx", body, footnotes=footnotes, endnotes=end))

    assert text == (
        "Claim[^1]\n\n[^1]: The second.\n\nAnother[^2][^e1]\n\n[^2]: The first.\n\n[^e1]: At the end.\n\nUnknown"
    )


def test_text_boxes_are_read_once(tmp_path: Path) -> None:
    inside = f"<w:txbxContent>{p('In the box')}{tbl([['a', 'b']])}</w:txbxContent>"
    both = (
        f"<w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing><wps:txbx>{inside}</wps:txbx></w:drawing>"
        f"</mc:Choice><mc:Fallback><w:pict><v:textbox>{inside}</v:textbox></w:pict></mc:Fallback>"
        "</mc:AlternateContent></w:r>"
    )
    old_inside = inside.replace("In the box", "Old box")
    old = f"<w:r><w:pict><v:shape><v:textbox>{old_inside}</v:textbox></v:shape></w:pict></w:r>"

    text = text_of(docx(tmp_path / "a.docx", p("Anchor", inner=both) + p(inner=old)))

    assert text == ("Anchor\n\nIn the box\n\n| a | b |\n| --- | --- |\n\nOld box\n\n| a | b |\n| --- | --- |")


def test_controls_links_and_fields_show_what_a_reader_sees(tmp_path: Path) -> None:
    def control(properties: str, content: str) -> str:
        return f"<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent>{content}</w:sdtContent></w:sdt>"

    run = "<w:r><w:t>{}</w:t></w:r>"
    box = control('<w14:checkbox><w14:checked w14:val="{}"/></w14:checkbox>', run.format("☒"))
    field = (
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r>'
        f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{run.format("7")}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )
    body = "".join(
        [
            p(inner=box.format(1) + run.format(" Done")),
            p(inner=box.format(0) + run.format(" Open")),
            control("<w:showingPlcHdr/>", p("Click here to enter text.")),
            control("", p("In a control")),
            p("Page ", inner=field + f"<w:hyperlink>{run.format(' of the site')}</w:hyperlink>"),
            p(inner="<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>" + run.format("shown")),
            p("a", inner="<w:r><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t></w:r>"),
        ]
    )

    text = text_of(docx(tmp_path / "a.docx", body))

    assert text == ("- [x] Done\n- [ ] Open\n\nIn a control\n\nPage 7 of the site\n\nshown\n\na b\nc-d")


def test_code_is_told_from_prose_in_the_same_font(tmp_path: Path) -> None:
    def courier(text: str) -> str:
        return p(
            inner=f'<w:r><w:rPr><w:rFonts w:ascii="Courier New"/></w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'
        )

    styles = style("Code", "Source Code") + style("Ref", "Source Reference")
    body = "".join(
        [
            p("import sys", style="Code") + p("    print(sys.argv)", style="Code"),
            p("See the source.", style="Ref"),
            courier("def f(n):") + courier("    return n"),
            p("Prose."),
            courier("A letter set in a typewriter face"),
        ]
    )

    unit = next(parse(docx(tmp_path / "a.docx", body, styles=styles)))

    assert unit.text == (
        "```\nimport sys\n    print(sys.argv)\n```\n\nSee the source.\n\n```\ndef f(n):\n    return n\n```\n\n"
        "Prose.\n\nA letter set in a typewriter face"
    )
    assert [block.kind for block in unit.blocks] == ["code", "paragraph", "code", "paragraph", "paragraph"]


def r(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


def e(inner: str) -> str:
    return f"<m:e>{inner}</m:e>"


@pytest.mark.parametrize(
    ("equation", "latex"),
    [
        (f"<m:f><m:num>{r('a')}</m:num><m:den>{r('b')}</m:den></m:f>", r"\frac{a}{b}"),
        (f"<m:sSup>{e(r('x'))}<m:sup>{r('2')}</m:sup></m:sSup>", "x^{2}"),
        (
            (
                f"<m:sSup>{e('<m:f><m:num>' + r('a') + '</m:num><m:den>' + r('b') + '</m:den></m:f>')}"
                f"<m:sup>{r('2')}</m:sup></m:sSup>"
            ),
            r"{\frac{a}{b}}^{2}",
        ),
        (
            (
                f"<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub>{r('i=1')}</m:sub><m:sup>{r('n')}</m:sup>"
                f"{e(r('i'))}</m:nary>"
            ),
            r"\sum_{i=1}^{n}i",
        ),
        (f"<m:rad><m:deg>{r('3')}</m:deg>{e(r('x'))}</m:rad>", r"\sqrt[3]{x}"),
        (f"<m:d>{e(r('x'))}</m:d>", r"\left(x\right)"),
        (
            f"<m:d><m:dPr><m:begChr m:val='{{'/><m:endChr m:val=''/></m:dPr>{e(r('x'))}</m:d>",
            r"\left\{x\right.",
        ),
        (f"<m:func><m:fName>{r('log')}</m:fName>{e(r('x'))}</m:func>", r"\log(x)"),
        (
            f"<m:func><m:fName><m:limLow>{e(r('lim'))}<m:lim>{r('n→∞')}</m:lim></m:limLow></m:fName>{e(r('x'))}</m:func>",
            r"\lim_{n \rightarrow \infty}(x)",
        ),
        (
            f"<m:m><m:mr>{e(r('1'))}{e(r('0'))}</m:mr><m:mr>{e(r('0'))}{e(r('1'))}</m:mr></m:m>",
            r"\begin{matrix}1 & 0 \\ 0 & 1\end{matrix}",
        ),
        (f"<m:acc>{e(r('x'))}</m:acc>", r"\hat{x}"),
        (r("2πr"), r"2 \pi r"),
        ("<m:r><m:rPr><m:nor/></m:rPr><m:t>speed</m:t></m:r>", r"\text{speed}"),
    ],
)
def test_equations_become_latex(tmp_path: Path, equation: str, latex: str) -> None:
    math = f"<m:oMath>{equation}</m:oMath>"
    body = p("Inline ", inner=math) + p(inner=f"<m:oMathPara>{math}</m:oMathPara>") + p(inner=math + math)

    text = text_of(docx(tmp_path / "a.docx", body))

    assert text == f"Inline ${latex}$\n\n$${latex}$$\n\n$${latex}$$\n\n$${latex}$$"


def test_equations_may_be_nested_as_deep_as_xml_may(tmp_path: Path) -> None:
    inner = r("x")
    for _ in range(80):
        inner = f"<m:rad>{e(inner)}</m:rad>"

    text = text_of(docx(tmp_path / "a.docx", p("Deep ", inner=f"<m:oMath>{inner}</m:oMath>")))

    assert text.count("sqrt") == 80


def test_charts_show_their_values(tmp_path: Path) -> None:
    def points(*values: str) -> str:
        return "".join(f'<c:pt idx="{at}"><c:v>{value}</c:v></c:pt>' for at, value in enumerate(values))

    chart = (
        f'<c:chartSpace xmlns:c="{C}" xmlns:a="{A}"><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Ducks</a:t></a:r>'
        "</a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart><c:ser>"
        f"<c:tx><c:strRef><c:strCache>{points('Wild')}</c:strCache></c:strRef></c:tx>"
        f"<c:cat><c:strRef><c:strCache>{points('2019', '2020')}</c:strCache></c:strRef></c:cat>"
        f"<c:val><c:numRef><c:numCache>{points('1.50', '2.0')}</c:numCache></c:numRef></c:val>"
        "</c:ser></c:barChart></c:plotArea></c:chart></c:chartSpace>"
    )
    drawing = (
        '<w:r><w:drawing><a:graphic><a:graphicData><c:chart r:id="c1"/></a:graphicData></a:graphic></w:drawing></w:r>'
    )
    document = f"<w:document {ROOT}><w:body>{p('See', inner=drawing)}</w:body></w:document>"
    parts = {"word/document.xml": document, "word/charts/chart1.xml": chart}
    links = {"word/document.xml": [("c1", "chart", "charts/chart1.xml")]}

    text = text_of(zipped(tmp_path / "a.docx", package("word/document.xml", parts, links)))

    assert text == "See\n\nDucks (bar chart)\n\n|  | Wild |\n| --- | --- |\n| 2019 | 1.5 |\n| 2020 | 2 |"


def test_strict_files_and_titles_are_read(tmp_path: Path) -> None:
    strict = docx(tmp_path / "strict.docx", p("One", style="Heading1") + tbl([["a", "b"]]), strict=True)
    titled = zipped(tmp_path / "t.docx", package("word/document.xml", {
        "word/document.xml": str(document_parts(p("Text"))["word/document.xml"]),
        "docProps/core.xml": core("A  Name"),
    }))  # fmt: skip

    assert text_of(strict) == "One\n\n| a | b |\n| --- | --- |"
    assert next(parse(titled)).title == "A Name"


def test_an_empty_document_is_one_empty_unit(tmp_path: Path) -> None:
    assert list(parse(docx(tmp_path / "a.docx", ""))) == [Unit(1, "", [])]


def long_body() -> str:
    rows = tbl([["Number", "Text"], *([str(number), "cell " * 20] for number in range(1500))])
    shapes = "".join(numbered(f"item {number} " + "word " * 10, 1) for number in range(1500))
    text = "".join(p(f"Paragraph {number}. " + "word " * 60) for number in range(300))
    return p("One", style="Heading1") + text + p("Two", style="Heading1") + rows + shapes + p("w " * 70_000)


@pytest.mark.req("KNOW-01")
def test_long_documents_are_cut_at_blocks_and_can_be_resumed(tmp_path: Path) -> None:
    path = docx(tmp_path / "a.docx", long_body(), styles=HEADINGS, numbering=numbering({1: levels(("decimal", "%1."))}))

    units = list(parse(path))

    assert [unit.number for unit in units] == list(range(1, len(units) + 1))
    assert len(units) > 6
    assert all(0 < len(unit.text) <= 66_000 for unit in units)
    assert sum(unit.text.count("# Two") for unit in units) == 1
    assert sum(unit.text.count("Paragraph ") for unit in units) == 300
    tables = [unit for unit in units if any(block.kind == "table" for block in unit.blocks)]
    assert len(tables) > 1
    assert all("| Number | Text |\n| --- | --- |" in unit.text for unit in tables)
    assert sum(unit.text.count("| cell ") for unit in tables) == 1500
    assert all(f"{number + 1}. item {number} " in "".join(unit.text for unit in units) for number in (0, 700, 1499))
    for unit in units:
        check_blocks(unit)
    for first in range(1, len(units) + 2):
        assert list(parse(path, first=first)) == units[first - 1 :]


MEMORY = """
import pathlib, sys
from importlib import import_module
def peak(): return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
parse = import_module(sys.argv[1]).parse
before = peak()
print(sum(len(unit.text) for unit in parse(pathlib.Path(sys.argv[2]))), peak() - before)
"""


@pytest.mark.req("KNOW-05")
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory where Linux says it")
def test_memory_stays_flat_for_one_long_table(tmp_path: Path) -> None:
    row = f"<w:tr>{cell('some words in a cell') * 4}</w:tr>"
    path = docx(tmp_path / "a.docx", f"<w:tbl>{row * 12_000}</w:tbl>")

    done = subprocess.run(
        [sys.executable, "-c", MEMORY, "holdfast.knowledge.parsing.docx", str(path)], capture_output=True, check=True
    )

    characters, grown = map(int, done.stdout.split())
    assert characters > 1_000_000
    assert grown < 32 * 1024  # kB, for 7 MB of XML, which is ten times as much as a tree
