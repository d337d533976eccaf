from pathlib import Path

import pytest

from holdfast.knowledge.parsing import csv
from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.parsing.limits import ParseLimits
from holdfast.knowledge.parsing.portions import PORTION
from holdfast.knowledge.parsing.units import Unit

pytestmark = pytest.mark.req("KNOW-01")

TABLE = "| name | city |\n| --- | --- |\n| Ann | Rome |\n| Bob | Paris |"


def units(path: Path, text: str | None = None, first: int = 1) -> list[Unit]:
    if text is not None:
        path.write_text(text)
    return list(csv.parse(path, first=first, limits=ParseLimits()))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_a_file_becomes_a_table(tmp_path: Path, delimiter: str) -> None:
    text = "name,city\nAnn,Rome\nBob,Paris\n".replace(",", delimiter)

    (unit,) = units(tmp_path / "a.csv", text)

    assert unit.text == TABLE
    assert [(block.kind, block.start, block.end) for block in unit.blocks] == [("table", 0, len(TABLE))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a,b\n"1, one","say ""hi"""\n', '| a | b |\n| --- | --- |\n| 1, one | say "hi" |'),
        ('a,b\n"two\nlines",2\n', "| a | b |\n| --- | --- |\n| two lines | 2 |"),
        ("a,b\nx|y,2\n", "| a | b |\n| --- | --- |\n| x\\|y | 2 |"),
        ("a,b\n1\n2,3\n4,5\n6,7\n", "| a | b |\n| --- | --- |\n| 1 |  |\n| 2 | 3 |\n| 4 | 5 |\n| 6 | 7 |"),
        ('a\tb\n5" pipe\t3" pipe\n', '| a | b |\n| --- | --- |\n| 5" pipe | 3" pipe |'),
        ("a,b\n\n,\n1,2\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("a,b\r\n1,2\r\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("a;b\n1,5;2,5\n3,5;4,5\n", "| a | b |\n| --- | --- |\n| 1,5 | 2,5 |\n| 3,5 | 4,5 |"),
    ],
)  # fmt: skip
def test_cells_are_as_they_are_meant(tmp_path: Path, text: str, expected: str) -> None:
    assert "\n\n".join(unit.text for unit in units(tmp_path / "a.csv", text)) == expected


def test_a_long_table_repeats_its_header(tmp_path: Path) -> None:
    text = "number,text\n" + "".join(f"{number},{'word ' * 20}\n" for number in range(3000))

    found = units(tmp_path / "a.csv", text)

    assert len(found) > 4
    assert all(unit.text.startswith("| number | text |\n| --- | --- |\n| ") for unit in found)
    assert max(len(unit.text) for unit in found) <= PORTION
    assert sum(unit.text.count("\n| ") - 1 for unit in found) == 3000
    for first in (2, len(found)):
        assert units(tmp_path / "a.csv", first=first) == found[first - 1 :]


def test_a_file_without_columns_is_text(tmp_path: Path) -> None:
    (unit,) = units(tmp_path / "a.csv", "one\ntwo\n\nthree\n")

    assert unit.text == "one\ntwo\n\nthree"


@pytest.mark.parametrize("text", ['a,b\n1,"open\n' + "x,y\n" * 100_000, "a,b\n" + "x" * 2_000_000 + ",1\n"])
def test_a_table_whose_rows_do_not_end_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ParseError) as caught:
        units(tmp_path / "a.csv", text)

    assert caught.value.code == "damaged"
    assert "a.csv cannot be read: its line" in str(caught.value)
