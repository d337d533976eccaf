"""Workbooks become tables: a unit for each sheet, or several where it is long."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.knowledge.parsing.markdown_table import cell, table
from holdfast.knowledge.parsing.units import Unit
from holdfast.knowledge.parsing.xlsx import parse
from holdfast.knowledge.parsing.xlsx.number_formats import number_format
from tests.knowledge.parsing.office_files import ROOT, A, C, S, sheet_rows, xlsx
from tests.knowledge.parsing.test_docx import MEMORY


def only(path: Path) -> str:
    (unit,) = parse(path)
    return unit.text


@pytest.mark.req("KNOW-01")
def test_each_visible_sheet_is_a_unit_with_its_name(tmp_path: Path) -> None:
    rows = sheet_rows({1: {"A": "Name", "B": "Age"}, 2: {"A": "Ann", "B": 41}})
    sheets = {"People": rows, "Secret": rows, "Empty": "<sheetData/>", "Last": rows}
    path = xlsx(tmp_path / "a.xlsx", sheets, hidden=["Secret"])

    units = list(parse(path))

    assert [unit.text.split("\n")[0] for unit in units] == ["# People", "# Last"]
    assert units[0].text == "# People\n\n| Name | Age |\n| --- | --- |\n| Ann | 41 |"
    assert [(unit.number, unit.page, unit.pages) for unit in units] == [(1, 1, 3), (2, 3, None)]
    assert [block.kind for block in units[0].blocks] == ["heading", "table"]


def test_cells_of_every_kind_have_their_text(tmp_path: Path) -> None:
    cells = (
        '<c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><r><t>rich </t></r><r><t>text</t></r></is></c>'
        '<c r="C1" t="b"><v>1</v></c><c r="D1" t="e"><v>#REF!</v></c><c r="E1" t="str"><f>A1</f><v>result</v></c>'
        '<c r="F1"><f>1/3</f><v>0.333333333333333314829616256247</v></c><c r="G1" s="1"/><c r="H1" t="s"><v>99</v></c>'
        "<c t='n'><v>1E3</v></c><c r='J1' t='d'><v>2024-05-06T00:00:00</v></c>"
    )
    sheet = f"<sheetData><row r='1'>{cells}</row></sheetData>"

    text = only(xlsx(tmp_path / "a.xlsx", {"S": sheet}, strings=["a_x000D_\nb|c"], formats=[0, 0]))

    assert "| a b\\|c | rich text | TRUE | #REF! | result | 0.333333333333333 |" in text
    assert "| 1000 | 2024-05-06 |" in text


@pytest.mark.parametrize(
    ("form", "value", "shown"),
    [
        (14, "45292", "2024-01-01"),
        (22, "45292.5", "2024-01-01 12:00:00"),
        (20, "0.75", "18:00:00"),
        (46, "1.5", "36:00:00"),
        (10, "0.125", "12.5%"),
        (2, "1.50", "1.5"),
        ("yyyy\\-mm\\-dd", "59", "1900-02-28"),
        ("yyyy\\-mm\\-dd", "61", "1900-03-01"),
        ("[$-409]d mmm yyyy h:mm AM/PM;@", "45292.25", "2024-01-01 06:00:00"),
        ('"$"#,##0.00', "1234.5", "$1234.5"),
        ("[$€-407] #,##0", "-12", "-€12"),
        ('0.0" kg"', "5.2", "5.2 kg"),
        ("[Red]0;[Blue]-0", "7", "7"),
        ("#,##0_);(#,##0)", "-3", "-3"),
        ('"Total:" General', "3", "3"),
        ("yyyy-mm-dd", "1e300", "1e+300"),
        ("@", "12", "12"),
    ],
)
def test_numbers_are_shown_by_their_format(form: int | str, value: str, shown: str) -> None:
    number = number_format(0, form) if isinstance(form, str) else number_format(form, None)

    assert number.show(value, since_1904=False) == shown


def test_days_count_from_1904_where_the_workbook_says_so() -> None:
    assert number_format(14, None).show("0", since_1904=True) == "1904-01-01"


def test_tables_with_empty_cells_between_them_are_apart(tmp_path: Path) -> None:
    rows: dict[int, dict[str, str | float]] = {
        1: {"A": "a", "B": "b", "E": "x", "F": "y"},
        2: {"A": 1, "B": 2, "E": 3, "F": 4},
        3: {"A": 5, "F": 6},
        5: {"B": "below", "C": "too"},
        6: {"B": 7, "C": 8},
        7: {"D": "corner", "E": "only"},
    }

    text = only(xlsx(tmp_path / "a.xlsx", {"S": sheet_rows(rows)}))

    assert text == (
        "# S\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n| 5 |  |\n\n| x | y |\n| --- | --- |\n| 3 | 4 |\n|  | 6 |\n\n"
        "| below | too |\n| --- | --- |\n| 7 | 8 |\n\n| corner | only |\n| --- | --- |"
    )


def test_a_title_stands_above_its_table_and_merged_cells_repeat(tmp_path: Path) -> None:
    rows: dict[int, dict[str, str | float]] = {
        1: {"A": "Ducks by year"},
        2: {"A": "Year", "B": "Ducks", "C": ""},
        3: {"A": "2019", "B": "wild", "C": 5},
        4: {"C": 6},
        8: {"A": "alone"},
    }
    merged = '<mergeCells><mergeCell ref="A1:C1"/><mergeCell ref="B2:C2"/><mergeCell ref="A3:A4"/>'
    merged += '<mergeCell ref="B3:B4"/><mergeCell ref="A8:F9"/><mergeCell ref="A20:XFD1048576"/></mergeCells>'

    text = only(xlsx(tmp_path / "a.xlsx", {"S": sheet_rows(rows) + merged}))

    assert text == (
        "# S\n\nDucks by year\n\n| Year | Ducks | Ducks |\n| --- | --- | --- |\n| 2019 | wild | 5 |\n"
        "| 2019 | wild | 6 |\n\n| alone |\n| --- |"
    )


def test_charts_text_boxes_and_comments_follow_the_tables(tmp_path: Path) -> None:
    chart = (
        f'<c:chartSpace xmlns:c="{C}" xmlns:a="{A}"><c:chart><c:plotArea><c:lineChart><c:ser><c:tx><c:v>Up</c:v></c:tx>'
        '<c:val><c:numLit><c:pt idx="0"><c:v>1</c:v></c:pt></c:numLit></c:val></c:ser></c:lineChart>'
        "</c:plotArea></c:chart></c:chartSpace>"
    )
    drawing = (
        f'<xdr:wsDr xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing" {ROOT}>'
        '<xdr:graphicFrame><a:graphic><a:graphicData><c:chart r:id="c"/></a:graphicData></a:graphic></xdr:graphicFrame>'
        "<xdr:sp><xdr:txBody><a:p><a:r><a:t>A note in a box</a:t></a:r></a:p></xdr:txBody></xdr:sp></xdr:wsDr>"
    )
    comments = (
        f'<comments xmlns="{S}"><authors><author>Ann</author></authors><commentList>'
        '<comment ref="A1" authorId="0"><text><t>Why?</t></text></comment>'
        '<comment ref="A2" authorId="0"><text><t>[Threaded comment]</t></text></comment></commentList></comments>'
    )
    threaded = (
        '<ThreadedComments><threadedComment ref="A2" dT="2026-01-02" personId="p"><text>Because.</text>'
        "</threadedComment></ThreadedComments>"
    )
    links = {
        "xl/worksheets/sheet1.xml": [
            ("d", "drawing", "../drawings/d.xml"),
            ("k", "comments", "../comments.xml"),
            ("t", "threadedComment", "../threaded.xml"),
        ],
        "xl/drawings/d.xml": [("c", "chart", "../charts/c.xml")],
    }
    parts = {
        "xl/drawings/d.xml": drawing,
        "xl/charts/c.xml": chart,
        "xl/comments.xml": comments,
        "xl/threaded.xml": threaded,
    }

    text = only(xlsx(tmp_path / "a.xlsx", {"S": sheet_rows({1: {"A": "x"}})}, links=links, parts=parts))

    assert text == (
        "# S\n\n| x |\n| --- |\n\nLine chart\n\n|  | Up |\n| --- | --- |\n|  | 1 |\n\nA note in a box\n\n"
        "Comment on A2 (2026-01-02): Because.\n\nComment on A1 (Ann): Why?"
    )


def long_sheet(rows: int) -> str:
    lines = (
        f'<row r="{row}"><c r="A{row}"><v>{row}</v></c><c r="B{row}" t="s"><v>{row % 3}</v></c></row>'
        for row in range(2, rows + 2)
    )
    head = '<row r="1"><c r="A1" t="inlineStr"><is><t>Number</t></is></c><c r="B1" t="s"><v>3</v></c></row>'
    return f"<sheetData>{head}{''.join(lines)}</sheetData>"


STRINGS = ["alpha " * 5, "beta", "gamma", "Word"]


@pytest.mark.req("KNOW-01")
def test_long_sheets_are_cut_with_their_header_and_can_be_resumed(tmp_path: Path) -> None:
    sheets = {"Long": long_sheet(9000), "After": sheet_rows({1: {"A": "end"}})}
    path = xlsx(tmp_path / "a.xlsx", sheets, strings=STRINGS)

    units = list(parse(path))

    assert len(units) > 3
    assert [unit.number for unit in units] == list(range(1, len(units) + 1))
    assert [unit.page for unit in units] == [1] * (len(units) - 1) + [2]
    assert all(len(unit.text) <= 64 * 1024 for unit in units)
    assert all("| Number | Word |\n| --- | --- |\n" in unit.text for unit in units[:-1])
    assert sum(unit.text.count("# Long") for unit in units) == 1
    numbers = [int(number) for unit in units[:-1] for number in re.findall(r"^\| (\d+) \|", unit.text, re.MULTILINE)]
    assert numbers == list(range(2, 9002))
    for first in range(1, len(units) + 2):
        assert list(parse(path, first=first)) == units[first - 1 :]


@pytest.mark.req("KNOW-05")
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory where Linux says it")
def test_memory_stays_flat_for_a_big_sheet(tmp_path: Path) -> None:
    path = xlsx(tmp_path / "a.xlsx", {"S": long_sheet(80_000)}, strings=STRINGS)

    done = subprocess.run(
        [sys.executable, "-c", MEMORY, "holdfast.knowledge.parsing.xlsx", str(path)], capture_output=True, check=True
    )

    characters, grown = map(int, done.stdout.split())
    assert characters > 1_000_000
    assert grown < 32 * 1024  # kB, for 6 MB of XML, which is ten times as much as a tree


def test_a_workbook_without_text_is_one_empty_unit(tmp_path: Path) -> None:
    assert list(parse(xlsx(tmp_path / "a.xlsx", {"S": "<sheetData/>"}))) == [Unit(1, "", [], 1, 1)]


def test_rows_without_numbers_and_out_of_order_are_read_as_they_come(tmp_path: Path) -> None:
    sheet = (
        "<sheetData><row><c><v>1</v></c><c><v>2</v></c></row><row r='2'><c><v>3</v></c></row>"
        "<row r='1'><c r='A1'><v>4</v></c></row><row r='99999999999999999'><c><v>5</v></c></row></sheetData>"
    )

    assert only(xlsx(tmp_path / "a.xlsx", {"S": sheet})) == (
        "# S\n\n| 1 | 2 |\n| --- | --- |\n| 3 |  |\n| 4 |  |\n| 5 |  |"
    )


@given(st.lists(st.lists(st.text("ab|\\\n\r\t \u2028", max_size=8), min_size=1, max_size=4), min_size=1, max_size=4))
def test_no_cell_breaks_its_table(rows: list[list[str]]) -> None:
    columns = max(map(len, rows))

    lines = table(rows).split("\n")

    assert len(lines) == len(rows) + 1
    assert all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == columns + 1 for line in lines)
    assert "\u2028" not in "".join(lines)
    assert all(cell(each).replace("\\", "").replace("|", "").split() for row in rows for each in row if "a" in each)
