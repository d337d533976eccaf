"""Electronic books become a unit for each chapter, in reading order."""

from pathlib import Path

import pytest

from holdfast.knowledge.parsing.epub import parse
from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.parsing.limits import ParseLimits
from tests.knowledge.parsing.office_files import epub, page, zipped


def only(path: Path) -> str:
    (unit,) = parse(path)
    return unit.text


@pytest.mark.req("KNOW-01")
def test_chapters_come_in_reading_order_without_the_contents(tmp_path: Path) -> None:
    chapters = {"zeta": "<h1>One</h1><p>First.</p>", "alpha": "<section><h2>Two</h2><p>Second.</p></section>"}
    path = epub(tmp_path / "a.epub", chapters, title="The Title")

    units = list(parse(path))

    assert [unit.text for unit in units] == ["# One\n\nFirst.", "## Two\n\nSecond."]
    assert [(unit.number, unit.page, unit.title, unit.total) for unit in units] == [
        (1, None, "The Title", 2),
        (2, None, None, 2),
    ]
    assert [(block.kind, block.level) for block in units[1].blocks] == [("heading", 2), ("paragraph", 0)]
    for first in range(1, 4):
        assert list(parse(path, first=first)) == units[first - 1 :]


def test_blocks_keep_their_structure(tmp_path: Path) -> None:
    body = (
        "Loose <b>text</b>\n with   spaces<p>A<br/>B</p><script>no()</script>"
        "<ul><li>one<ul><li>inner</li></ul></li><li><p>two</p></li></ul><ol start='3'><li>three</li></ol>"
        "<pre>x = 1\n  y</pre><blockquote><p>Quoted</p></blockquote>"
        "<table><caption>Numbers</caption><thead><tr><th>a</th><th colspan='2'>b|c</th></tr></thead>"
        "<tr><td rowspan='2'>1</td><td>2</td><td>3</td></tr><tr><td>4</td><td></td></tr></table>"
        "<figure><img alt='A duck' src='d.png'/><figcaption>Figure 1</figcaption></figure>"
        "<p>soft\u00adhyphen and <ruby>漢<rt>kan</rt></ruby></p>"
    )

    assert only(epub(tmp_path / "a.epub", {"c": body})) == (
        "Loose text with spaces\n\nA\nB\n\n- one\n    - inner\n- two\n\n3. three\n\n```\nx = 1\n  y\n```\n\nQuoted\n\n"
        "Numbers\n\n| a | b\\|c | b\\|c |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n| 1 | 4 |  |\n\nA duck\n\nFigure 1\n\n"
        "softhyphen and 漢"
    )


def test_named_characters_are_shown_and_defined_entities_are_not(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    bomb = f"<!DOCTYPE html [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'><!ENTITY f SYSTEM '{secret.as_uri()}'>]>"
    named = "<!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.1//EN' 'xhtml11.dtd'>"
    html = "<html xmlns='http://www.w3.org/1999/xhtml'><body><p>{}</p></body></html>"
    chapters = {"a": bomb + html.format("x&b;&f;y"), "b": named + html.format("caf&eacute;&nbsp;&mdash; no")}

    assert [unit.text for unit in parse(epub(tmp_path / "a.epub", chapters))] == ["xy", "café\u00a0— no"]


def test_a_chapter_that_is_not_well_formed_is_read_as_browsers_do(tmp_path: Path) -> None:
    broken = "<html><body><h1>Title</h1><p>One<p>Two &nbsp;<b>bold</body>"
    deep = f"<html><body>{'<div>' * 3000}bottom</body></html>"

    units = list(parse(epub(tmp_path / "a.epub", {"a": broken, "b": "<html"})))

    assert units[0].text == "# Title\n\nOne\n\nTwo \u00a0bold"
    assert units[1].text == ""
    with pytest.raises(ParseError) as caught:
        list(parse(epub(tmp_path / "b.epub", {"a": deep})))
    assert caught.value.code == "too_deep"


def test_books_with_protected_text_are_refused(tmp_path: Path) -> None:
    def encryption(part: str) -> dict[str, str]:
        return {
            "META-INF/encryption.xml": (
                "<encryption xmlns='urn:oasis:names:tc:opendocument:xmlns:container'><EncryptedData><CipherData>"
                f"<CipherReference URI='{part}'/></CipherData></EncryptedData></encryption>"
            )
        }

    locked = epub(tmp_path / "a.epub", {"c": "<p>text</p>"}, extra=encryption("OEBPS/text/c.xhtml"))
    fonts = epub(tmp_path / "b.epub", {"c": "<p>text</p>"}, extra=encryption("OEBPS/fonts/f.otf"))

    with pytest.raises(ParseError) as caught:
        list(parse(locked))
    assert caught.value.code == "encrypted"
    assert only(fonts) == "text"


def test_books_without_chapters_are_damaged(tmp_path: Path) -> None:
    empty = epub(tmp_path / "a.epub", {})
    without = zipped(tmp_path / "b.epub", {"META-INF/container.xml": "<container/>"})

    for path in (empty, without):
        with pytest.raises(ParseError) as caught:
            list(parse(path))
        assert caught.value.code == "damaged"


def test_a_chapter_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = epub(tmp_path / "a.epub", {"c": page("<p>text</p>" * 1000)})

    with pytest.raises(ParseError) as caught:
        list(parse(path, limits=ParseLimits(part_bytes=5000)))

    assert caught.value.code == "too_large"
