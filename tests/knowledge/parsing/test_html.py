from pathlib import Path

import pytest

from holdfast.knowledge.parsing import html
from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.parsing.limits import ParseLimits
from holdfast.knowledge.parsing.portions import PORTION
from holdfast.knowledge.parsing.units import Unit

pytestmark = pytest.mark.req("KNOW-01")


def units(path: Path, page: str | bytes | None = None, first: int = 1) -> list[Unit]:
    if page is not None:
        path.write_bytes(page.encode() if isinstance(page, str) else page)
    return list(html.parse(path, first=first, limits=ParseLimits()))


def text(path: Path, page: str | bytes) -> str:
    return "\n\n".join(unit.text for unit in units(path, page))


CASES = {
    "headings": ("<h1>One</h1><p>text</p><h3>Three <em>it</em></h3>", "# One\n\ntext\n\n### Three it"),
    "blanks": ("<p>  a\n b\t<b> c</b> </p><div>d<div>e</div>f</div>", "a b c\n\nd\n\ne\n\nf"),
    "breaks": ("<p>a<br>b<br/>\n c</p>", "a\nb\nc"),
    "links are text": ('<p>See <a href="https://example.com">the page</a>.</p>', "See the page."),
    "lists": ("<ul><li>a<li>b<ol start=3><li>c</li></ol></ul>", "- a\n- b\n  3. c"),
    "paragraphs in items": ("<ul><li><p>a</p><p>b</p></li><li>c</li></ul>", "- a\n  b\n- c"),
    "definitions": ("<dl><dt>Tea</dt><dd>A drink.</dd></dl>", "Tea\n\nA drink."),
    "code": ('<pre><code class="language-py">x = 1\n\n  y</code></pre>', "```py\nx = 1\n\n  y\n```"),
    "inline code": ("<p>Run <code>make</code> or <kbd>Ctrl-C</kbd>.</p>", "Run `make` or `Ctrl-C`."),
    "quotations": ("<blockquote><p>a</p></blockquote>", "> a"),
    "a table": (
        "<table><caption>T</caption><tr><th>a<th>b|c</tr><tr><td>1<br>2<td><p>x</p><p>y</p></table>",
        "T\n\n| a | b\\|c |\n| --- | --- |\n| 1 2 | x y |",
    ),
    "cells that span": (
        "<table><tr><th colspan=2>a<tr><td rowspan=2>1<td>2<tr><td>3</table>",
        "| a | a |\n| --- | --- |\n| 1 | 2 |\n| 1 | 3 |",
    ),
    "a table in a table": (
        "<table><tr><td>a<td><table><tr><td>b<td>c</table><tr><td>d<td>e</table>",
        "| a | b c |\n| --- | --- |\n| d | e |",
    ),
    "a table that only arranges": ("<table><tr><td><p>a</p></td></tr><tr><td>b</td></tr></table>", "a\n\nb"),
    "what is not shown": (
        "<p>a</p><script>x</script><style>y</style><p hidden>b</p><p style='display: none'>c</p><!-- g -->",
        "a",
    ),
    "navigation": (
        f"<nav>menu</nav><div role=navigation>more</div><p>{'content ' * 9}</p>",
        "content " * 8 + "content",
    ),
    "main content": (
        f"<header>logo</header><main><p>{'content ' * 9}</p></main><footer>imprint</footer>",
        "content " * 8 + "content",
    ),
    "a page of links": ("<nav><ul><li><a href=a>One</a><li><a href=b>Two</a></ul></nav>", "- One\n- Two"),
    "entities": ("<p>a &amp; b &lt;c&gt; &eacute;&nbsp;d</p>", "a & b <c> \u00e9\u00a0d"),
    "broken": ("<p>a<b>b<p>c</i></table><h2>d", "ab\n\nc\n\n## d"),
    "captions": ("<figure><img src=a><figcaption>A duck</figcaption></figure>", "A duck"),
}


@pytest.mark.parametrize(("page", "expected"), CASES.values(), ids=list(CASES))
def test_a_page_becomes_markdown(tmp_path: Path, page: str, expected: str) -> None:
    assert text(tmp_path / "a.html", f"<html><body>{page}</body></html>") == expected


def test_blocks_are_of_the_kinds_that_elements_have(tmp_path: Path) -> None:
    page = (
        "<h2>h</h2><p>p</p><ul><li>l</ul><table><tr><td>a<td>b<tr><td>c<td>d</table><pre>x</pre>"
        "<figcaption>f</figcaption>"
    )

    (unit,) = units(tmp_path / "a.html", page)

    assert [(block.kind, block.level) for block in unit.blocks] == [
        ("heading", 2),
        ("paragraph", 0),
        ("list", 0),
        ("table", 0),
        ("code", 0),
        ("caption", 0),
    ]


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("<title> The\n Guide </title><h1>Other</h1>", "The Guide"),
        ("<h1>The Guide</h1>", "The Guide"),
        ("<p>text</p>", None),
    ],
)
def test_the_title_of_a_page_is_its_title_or_first_heading(tmp_path: Path, page: str, title: str | None) -> None:
    assert units(tmp_path / "a.html", page + "<p>text</p>")[0].title == title


@pytest.mark.parametrize(
    ("encoding", "meta"),
    [
        ("utf-8", ""),
        ("utf-16", ""),
        ("gb18030", '<meta charset="gb2312">'),
        ("big5", '<meta http-equiv="Content-Type" content="text/html; charset=big5">'),
        ("shift_jis", "<meta charset=Shift_JIS>"),
    ],
)
def test_a_page_is_read_in_the_encoding_that_it_declares(tmp_path: Path, encoding: str, meta: str) -> None:
    words = "\u6587\u5b57" * 10

    assert text(tmp_path / "a.html", f"<html><head>{meta}</head><p>{words}</p>".encode(encoding)) == words


def test_a_declared_encoding_that_is_unknown_is_ignored(tmp_path: Path) -> None:
    page = "<meta charset='no-such'><p>caf\u00e9</p>".encode("cp1252")

    assert text(tmp_path / "a.html", page) == "caf\u00e9"


def test_a_long_page_is_read_in_portions(tmp_path: Path) -> None:
    rows = "".join(f"<tr><td>{number}<td>{'cell ' * 20}" for number in range(3000))
    page = f"<h1>T</h1><p>{'word ' * 40_000}</p><table><tr><th>n<th>text{rows}</table><p>End</p>"

    found = units(tmp_path / "a.html", page)

    assert len(found) > 5
    assert max(len(unit.text) for unit in found) <= PORTION
    tables = [unit.text[block.start :] for unit in found for block in unit.blocks if block.kind == "table"]
    assert all(table.startswith("| n | text |\n| --- | --- |\n| ") for table in tables)
    assert len(tables) > 2
    for first in (2, len(found)):
        assert units(tmp_path / "a.html", first=first) == found[first - 1 :]


def test_elements_can_be_nested_deep(tmp_path: Path) -> None:
    deep = "<div>" * 3000 + "<p>bottom</p>" + "<ul><li>" * 300 + "item"

    assert text(tmp_path / "a.html", deep).startswith("bottom\n\n")


def test_spans_of_cells_are_limited(tmp_path: Path) -> None:
    row = "<tr><td colspan=999999 rowspan=999999>a"
    (unit,) = units(tmp_path / "a.html", f"<table>{row}{row}</table>")

    assert unit.text.count("\n") == 2
    with pytest.raises(ParseError, match=r"a\.html cannot be read") as caught:
        units(tmp_path / "a.html", f"<table><tr>{'<td colspan=999 rowspan=999>a' * 200}</table>")
    assert caught.value.code == "too_large"
