"""Office files for tests, written part by part as the standard has them."""

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

SCHEMAS = "http://schemas.openxmlformats.org"
STRICT = "http://purl.oclc.org/ooxml"
W = f"{SCHEMAS}/wordprocessingml/2006/main"
A = f"{SCHEMAS}/drawingml/2006/main"
P = f"{SCHEMAS}/presentationml/2006/main"
S = f"{SCHEMAS}/spreadsheetml/2006/main"
R = f"{SCHEMAS}/officeDocument/2006/relationships"
M = f"{SCHEMAS}/officeDocument/2006/math"
C = f"{SCHEMAS}/drawingml/2006/chart"
OFFICE = "application/vnd.openxmlformats-officedocument."
MAIN_TYPES = {
    "word/document.xml": OFFICE + "wordprocessingml.document.main+xml",
    "ppt/presentation.xml": OFFICE + "presentationml.presentation.main+xml",
    "xl/workbook.xml": OFFICE + "spreadsheetml.sheet.main+xml",
}
ROOT = (
    f'xmlns:w="{W}" xmlns:a="{A}" xmlns:p="{P}" xmlns:r="{R}" xmlns:m="{M}" xmlns:c="{C}" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    f'xmlns:dgm="{SCHEMAS}/drawingml/2006/diagram"'
)

Parts = Mapping[str, str | bytes]
Links = Mapping[str, Sequence[tuple[str, str, str]]]  # part -> id, kind, target


def zipped(path: Path, parts: Parts, *, method: int = zipfile.ZIP_DEFLATED) -> Path:
    """A zip archive of these parts."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def package(main: str, parts: Parts, links: Links | None = None, *, strict: bool = False) -> dict[str, str | bytes]:
    """The parts of an Office file, with its content types and relationships."""
    kinds = f"{STRICT}/officeDocument/relationships" if strict else R
    content_types = (
        f'<Types xmlns="{SCHEMAS}/package/2006/content-types">'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/{main}" ContentType="{MAIN_TYPES[main]}"/></Types>'
    )
    found: dict[str, str | bytes] = {"[Content_Types].xml": content_types, **parts}
    related = {"": [("main", "officeDocument", main)], **(links or {})}
    if "docProps/core.xml" in parts:
        related[""] = [*related[""], ("core", "metadata/core-properties", "docProps/core.xml")]
    for part, each in related.items():
        folder, _, name = part.rpartition("/")
        items = "".join(
            f'<Relationship Id="{id}" Type="{kinds}/{kind}" Target={quoteattr(target)}/>' for id, kind, target in each
        )
        place = f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels"
        found[place] = f'<Relationships xmlns="{SCHEMAS}/package/2006/relationships">{items}</Relationships>'
    return found


def core(title: str) -> str:
    """The properties of a document."""
    return (
        f'<cp:coreProperties xmlns:cp="{SCHEMAS}/package/2006/metadata/core-properties" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{escape(title)}</dc:title></cp:coreProperties>'
    )


# DOCX


def document_parts(body: str, *, strict: bool = False, **parts: str) -> dict[str, str | bytes]:
    """The parts of a document: `styles`, `numbering`, `footnotes` and `endnotes` are contents of parts of that name."""
    root = ROOT.replace(W, f"{STRICT}/wordprocessingml/main").replace(M, f"{STRICT}/officeDocument/math")
    root = root if strict else ROOT
    links = {"word/document.xml": [(name, name, f"{name}.xml") for name in parts]}
    wholes = {f"word/{name}.xml": f"<w:{name} {root}>{content}</w:{name}>" for name, content in parts.items()}
    main = f"<w:document {root}><w:body>{body}<w:sectPr/></w:body></w:document>"
    return package("word/document.xml", {"word/document.xml": main, **wholes}, links, strict=strict)


def docx(path: Path, body: str, *, strict: bool = False, **parts: str) -> Path:
    """A document with this body."""
    return zipped(path, document_parts(body, strict=strict, **parts))


def p(text: str = "", *, style: str | None = None, properties: str = "", inner: str = "") -> str:
    """A paragraph."""
    styled = f'<w:pStyle w:val="{style}"/>' if style else ""
    run = f'<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r>' if text else ""
    return f"<w:p><w:pPr>{styled}{properties}</w:pPr>{run}{inner}</w:p>"


def numbered(text: str, list_id: int, level: int = 0) -> str:
    """A paragraph of a list."""
    return p(text, properties=f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list_id}"/></w:numPr>')


def style(id: str, name: str, inner: str = "", based_on: str | None = None) -> str:
    """A paragraph style."""
    parent = f'<w:basedOn w:val="{based_on}"/>' if based_on else ""
    return f'<w:style w:type="paragraph" w:styleId="{id}"><w:name w:val="{name}"/>{parent}{inner}</w:style>'


def cell(*paragraphs: str, properties: str = "") -> str:
    """A cell of a table; plain texts become paragraphs."""
    inner = "".join(each if each.startswith("<w:") else p(each) for each in paragraphs) or p()
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{inner}</w:tc>"


def tbl(rows: Iterable[Iterable[str]]) -> str:
    """A table; plain texts become cells."""
    lines = ("".join(each if each.startswith("<w:tc>") else cell(each) for each in row) for row in rows)
    return f"<w:tbl><w:tblPr/>{''.join(f'<w:tr>{line}</w:tr>' for line in lines)}</w:tbl>"


# PPTX


def slide(shapes: str) -> str:
    """A slide with these shapes."""
    return f"<p:sld {ROOT}><p:cSld><p:spTree><p:nvGrpSpPr/>{shapes}</p:spTree></p:cSld></p:sld>"


def shape(paragraphs: str | Sequence[str], *, kind: str | None = None, index: str | None = None) -> str:
    """A shape with text, in a placeholder or not."""
    place = f'type="{kind}"' if kind else ""
    place += f' idx="{index}"' if index else ""
    marker = f"<p:ph {place}/>" if place else ""
    lines = [paragraphs] if isinstance(paragraphs, str) else paragraphs
    text = "".join(line if line.startswith("<a:p>") else ap(line) for line in lines)
    return f"<p:sp><p:nvSpPr><p:nvPr>{marker}</p:nvPr></p:nvSpPr><p:txBody><a:bodyPr/>{text}</p:txBody></p:sp>"


def ap(text: str, properties: str = "") -> str:
    """A paragraph in a drawing."""
    return f"<a:p>{properties}<a:r><a:t>{escape(text)}</a:t></a:r></a:p>"


def pptx(path: Path, slides: Sequence[str], links: Links | None = None, parts: Parts | None = None) -> Path:
    """A presentation. `links` and `parts` add what slides use."""
    numbers = range(1, len(slides) + 1)
    listed = "".join(f'<p:sldId id="{255 + each}" r:id="s{each}"/>' for each in numbers)
    main = f"<p:presentation {ROOT}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>"
    related = {
        "ppt/presentation.xml": [(f"s{each}", "slide", f"slides/slide{each}.xml") for each in numbers],
        **(links or {}),
    }
    contents = {f"ppt/slides/slide{each}.xml": slides[each - 1] for each in numbers}
    wholes = {"ppt/presentation.xml": main, **contents, **(parts or {})}
    return zipped(path, package("ppt/presentation.xml", wholes, related))


# XLSX


def xlsx(
    path: Path,
    sheets: Mapping[str, str],
    *,
    strings: Sequence[str] = (),
    formats: Sequence[int | str] = (),
    hidden: Sequence[str] = (),
    links: Links | None = None,
    parts: Parts | None = None,
) -> Path:
    """A workbook. A sheet is what `s:worksheet` contains; `formats` are those of the styles, by number or code."""
    names = list(sheets)
    states = {name: "hidden" if name in hidden else "visible" for name in names}
    listed = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{at}" state="{states[name]}" r:id="s{at}"/>'
        for at, name in enumerate(names, 1)
    )
    main = f'<workbook xmlns="{S}" xmlns:r="{R}"><sheets>{listed}</sheets></workbook>'
    contents = {
        f"xl/worksheets/sheet{at}.xml": f'<worksheet xmlns="{S}" xmlns:r="{R}">{sheets[name]}</worksheet>'
        for at, name in enumerate(names, 1)
    }
    texts = "".join(f"<si><t>{escape(each)}</t></si>" for each in strings)
    contents["xl/sharedStrings.xml"] = f'<sst xmlns="{S}">{texts}</sst>'
    codes = [each for each in formats if isinstance(each, str)]
    defined = "".join(f'<numFmt numFmtId="{200 + at}" formatCode={quoteattr(code)}/>' for at, code in enumerate(codes))
    ids = [200 + codes.index(each) if isinstance(each, str) else each for each in formats]
    cells = "".join(f'<xf numFmtId="{id}"/>' for id in ids)
    contents["xl/styles.xml"] = (
        f'<styleSheet xmlns="{S}"><numFmts>{defined}</numFmts><cellXfs>{cells}</cellXfs></styleSheet>'
    )
    related = {
        "xl/workbook.xml": [
            *((f"s{at}", "worksheet", f"worksheets/sheet{at}.xml") for at in range(1, len(names) + 1)),
            ("strings", "sharedStrings", "sharedStrings.xml"),
            ("styles", "styles", "styles.xml"),
        ],
        **(links or {}),
    }
    return zipped(path, package("xl/workbook.xml", {"xl/workbook.xml": main, **contents, **(parts or {})}, related))


def sheet_rows(rows: Mapping[int, Mapping[str, str | float]]) -> str:
    """The `sheetData` of a sheet: rows by number, cells by column letter; texts are inline."""
    lines: list[str] = []
    for number, cells in rows.items():
        line = ""
        for column, value in cells.items():
            if isinstance(value, str):
                line += f'<c r="{column}{number}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
            else:
                line += f'<c r="{column}{number}"><v>{value}</v></c>'
        lines.append(f'<row r="{number}">{line}</row>')
    return f"<sheetData>{''.join(lines)}</sheetData>"


# EPUB


def epub(path: Path, chapters: Mapping[str, str], *, title: str = "A Book", extra: Parts | None = None) -> Path:
    """A book: the bodies of its chapters by name, in reading order, after a table of contents."""
    items = "".join(
        f'<item id="{name}" href="text/{name}.xhtml" media-type="application/xhtml+xml"/>' for name in chapters
    )
    spine = "".join(f'<itemref idref="{name}"/>' for name in ("nav", *chapters))
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{escape(title)}</dc:title></metadata>'
        '<manifest><item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>'
        f"{items}</manifest><spine>{spine}</spine></package>"
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
    )
    pages = {f"OEBPS/text/{name}.xhtml": body if "<html" in body else page(body) for name, body in chapters.items()}
    nav = page("<h1>Contents</h1>")
    parts = {"META-INF/container.xml": container, "OEBPS/book.opf": opf, "OEBPS/nav.xhtml": nav, **pages}
    return zipped(path, {"mimetype": "application/epub+zip", **parts, **(extra or {})})


def page(body: str) -> str:
    """A chapter with this body."""
    return (
        '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml">'
        f"<head><title/></head><body>{body}</body></html>"
    )
