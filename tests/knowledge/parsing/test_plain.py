import itertools
from pathlib import Path

import pytest

from holdfast.knowledge.parsing import plain
from holdfast.knowledge.parsing.encodings import find_encoding, is_binary
from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.parsing.limits import ParseLimits
from holdfast.knowledge.parsing.portions import PORTION
from holdfast.knowledge.parsing.units import Unit

pytestmark = pytest.mark.req("KNOW-01")

ENGLISH = "The caf\u00e9 in the old town opens at nine. Its na\u00efve owner speaks of his r\u00e9sum\u00e9.\n" * 20
SIMPLIFIED = "我们的系统在后台运行、它会把文件分成许多小块、然后用这些小块来回答用户的问题。这是一个很长的句子。\n" * 20
TRADITIONAL = (
    "我們的系統在後台運行、它會把文件分成許多小塊、然後用這些小塊來回答用戶的問題。這是一個很長的句子。\n" * 20
)
JAPANESE = "このシステムは文書を小さな部分に分けて、利用者の質問に答えるためにそれを使います。\n" * 20
KOREAN = "이 시스템은 문서를 작은 부분으로 나누어 사용자의 질문에 대답하기 위해 그것을 사용합니다.\n" * 20


def units(path: Path, first: int = 1, limits: ParseLimits | None = None) -> list[Unit]:
    return list(plain.parse(path, first=first, limits=limits or ParseLimits()))


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (ENGLISH, "utf-8"),
        (ENGLISH, "utf-8-sig"),
        (ENGLISH, "utf-16"),
        (ENGLISH, "utf-16-le"),
        (ENGLISH, "utf-16-be"),
        (ENGLISH, "utf-32"),
        (ENGLISH, "utf-32-le"),
        (ENGLISH, "cp1252"),
        (ENGLISH, "latin-1"),
        (SIMPLIFIED, "utf-8"),
        (SIMPLIFIED, "utf-16"),
        (SIMPLIFIED, "gb18030"),
        (SIMPLIFIED, "gbk"),
        (TRADITIONAL, "big5"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (KOREAN, "euc_kr"),
    ],
)
def test_a_text_is_read_in_the_encoding_that_it_has(tmp_path: Path, text: str, encoding: str) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(text.encode(encoding))

    assert units(path)[0].text == text.rstrip()
    assert not is_binary(path.read_bytes())


def test_a_long_text_in_ascii_with_one_foreign_letter_at_its_end_is_not_damaged(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"A line of words.\n" * 200_000 + "Zo\u00eb".encode("cp1252"))

    assert find_encoding(path) == "cp1252"
    assert units(path)[-1].text.endswith("Zo\u00eb")


def test_damaged_bytes_in_a_text_of_utf_8_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(SIMPLIFIED.encode() + b"\xff\xfe broken " + SIMPLIFIED.encode())

    text = units(path)[0].text

    assert text.startswith("我们的系统")
    assert text.count("\ufffd") == 2


@pytest.mark.parametrize(
    "content",
    [bytes(100), b"\x7fELF\x02\x01\x01" + bytes(100), bytes(range(256)) * 4, b"a" * 100 + b"\x01\x02\x03\x04"],
)
def test_a_binary_file_is_told_from_a_text(content: bytes) -> None:
    assert is_binary(content)


def test_paragraphs_are_blocks(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\n\nFirst line\nsecond line\r\n\r\n   \r\n  Indented paragraph\n\n\nLast")

    (unit,) = units(path)

    assert [unit.text[block.start : block.end] for block in unit.blocks] == [
        "First line\nsecond line",
        "  Indented paragraph",
        "Last",
    ]


def test_a_long_text_is_read_in_portions_that_end_at_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    paragraphs = [f"Paragraph {number}." + " words" * 100 for number in range(1000)]
    path.write_text("\n\n".join(paragraphs))

    found = units(path)

    assert len(found) > 5
    assert max(len(unit.text) for unit in found) <= PORTION
    assert "\n\n".join(unit.text for unit in found).split("\n\n") == paragraphs
    assert [unit.number for unit in found] == list(range(1, len(found) + 1))


@pytest.mark.parametrize("first", [2, 5])
def test_a_portion_is_the_same_from_wherever_a_read_begins(tmp_path: Path, first: int) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join(f"Paragraph {number}. " + "words " * 100 for number in range(1000)))

    assert units(path, first) == units(path)[first - 1 :]


def test_a_text_of_one_line_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("word " * 100_000 + "x" * 200_000)

    found = units(path)

    assert max(len(unit.text) for unit in found) <= PORTION
    assert "".join(unit.text for unit in found).replace(" ", "") == "word" * 100_000 + "x" * 200_000


def test_only_as_much_of_a_text_is_read_as_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    with path.open("wb") as file:
        file.write(b"A line of text.\n" * 10_000)
        file.truncate(300_000_000)

    first = next(plain.parse(path, limits=ParseLimits()))

    assert first.text.startswith("A line of text.")
    assert len(first.text) <= PORTION


def test_a_text_above_the_limits_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("A paragraph of words.\n\n" * 20_000)

    for limits in (ParseLimits(characters=100_000), ParseLimits(units=2)):
        with pytest.raises(ParseError) as caught:
            units(path, limits=limits)
        assert caught.value.code == "too_large"
        assert caught.value.what == "text.txt cannot be read"


def test_the_lines_of_settings_and_data_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("a:\n  b: 1\n\nc: 2\n")

    (unit,) = plain.parse_lines(path, limits=ParseLimits())

    assert [(block.kind, unit.text[block.start : block.end]) for block in unit.blocks] == [
        ("code", "a:\n  b: 1"),
        ("code", "c: 2"),
    ]


def test_an_empty_text_has_no_units(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(" \n\n ")

    assert units(path) == []


def test_every_decoder_of_an_older_encoding_exists() -> None:
    for encoding, text in itertools.product(("gb18030", "big5hkscs", "shift_jis", "euc_jp", "cp949", "cp1252"), "a"):
        assert text.encode(encoding) == b"a"
