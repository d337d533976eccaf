from importlib.util import find_spec
from pathlib import Path

import pytest

from holdfast.knowledge.parsing.detect import (
    DOCX,
    EPUB,
    FORMATS,
    HTML,
    MARKDOWN,
    PARSERS,
    PDF,
    PPTX,
    TEXT,
    XLSX,
    find_media_type,
    find_parser,
    formats_for_people,
)
from holdfast.knowledge.parsing.errors import ParseError
from tests.knowledge.parsing.office_files import document_parts, docx, p, pptx, sheet_rows, xlsx, zipped
from tests.knowledge.parsing.pdf_writer import page_of, write_pdf
from tests.rules.tree import ROOT

pytestmark = pytest.mark.req("KNOW-01")

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
PAGE = b"<!doctype html><html><p>text</p></html>"


def detected(folder: Path, name: str, content: bytes, declared: str | None = None) -> str:
    path = folder / "upload"
    path.write_bytes(content)
    return find_media_type(path, name=name, declared=declared)


@pytest.mark.parametrize(
    ("name", "content", "media_type"),
    [
        ("notes.txt", b"text", TEXT),
        ("notes.md", b"# text", MARKDOWN),
        ("README", b"# text", MARKDOWN),
        ("notes", b"text", TEXT),
        ("notes.unknown", b"text", TEXT),
        ("folder/page.HTM", b"<p>text", HTML),
        ("page.txt", PAGE, HTML),
        ("page", b"\xef\xbb\xbf\n <!-- a --><HTML>", HTML),
        ("page.docx", PAGE, HTML),
        ("page.pdf", b"plain text", TEXT),
        ("notes.md", b"<html> is how pages begin", MARKDOWN),
        ("template.py", PAGE, "text/x-python"),
        ("data.csv", b"a,b", "text/csv"),
        ("data.tsv", b"a\tb", "text/tab-separated-values"),
        ("data.json", b"{}", "application/json"),
        ("feed", b"<?xml version='1.0'?><rss/>", "application/xml"),
        ("page.xhtml", b"<?xml version='1.0'?><html>", HTML),
        ("run", b"#!/usr/bin/env python3\n", "text/x-python"),
        ("run", b"#!/bin/sh\n", "text/x-source-code"),
        ("Dockerfile", b"FROM a", "text/x-source-code"),
        ("a.tsx", b"a", "text/x-tsx"),
        ("a.pdf", b"%PDF-1.7 ...", PDF),
        ("a.txt", b"\n\n%PDF-1.7 ...", PDF),
        ("text.txt", "\u6587".encode("utf-16"), TEXT),
        ("text.txt", b"", TEXT),
    ],
)
def test_the_format_is_found_by_content_then_by_name(
    tmp_path: Path, name: str, content: bytes, media_type: str
) -> None:
    assert detected(tmp_path, name, content) == media_type


@pytest.mark.parametrize(
    ("name", "declared", "media_type"),
    [
        ("notes", "text/markdown; charset=utf-8", MARKDOWN),
        ("notes", "Text/X-Markdown", MARKDOWN),
        ("notes", "application/octet-stream", TEXT),
        ("notes.md", "text/plain", MARKDOWN),
        ("notes", "application/pdf", TEXT),
    ],
)
def test_a_declared_type_counts_if_content_and_name_do_not_tell(
    tmp_path: Path, name: str, declared: str, media_type: str
) -> None:
    assert detected(tmp_path, name, b"text", declared) == media_type


def test_office_files_are_found_by_what_is_in_them(tmp_path: Path) -> None:
    files = {
        docx(tmp_path / "a.zip", p("a")): DOCX,
        pptx(tmp_path / "b.bin", []): PPTX,
        xlsx(tmp_path / "c.pdf", {"S": sheet_rows({1: {"A": "a"}})}): XLSX,
        zipped(tmp_path / "d.txt", {"mimetype": "application/epub+zip", "META-INF/container.xml": "<a/>"}): EPUB,
        write_pdf(tmp_path / "e.docx", [page_of("a")]): PDF,
    }

    assert {path: find_media_type(path) for path in files} == files


@pytest.mark.parametrize(
    ("name", "content", "code", "text"),
    [
        ("a.pdf", b"", "damaged", "it is empty. Copy or download it again."),
        ("a.docx", b"PK\x03\x04" + bytes(50), "damaged", "it is an archive that is truncated or damaged"),
        ("a.rtf", b"{\\rtf1 text}", "unsupported", "it is an RTF document. Open it in a word processor"),
        ("a.doc", OLE + bytes(600), "unsupported", "an Office file of before 2007"),
        ("a.xls", OLE + "Workbook".encode("utf-16-le"), "unsupported", "save it as XLSX"),
        ("a.docx", OLE + "EncryptedPackage".encode("utf-16-le"), "encrypted", "save it without"),
        ("a.txt", b"\x89PNG\r\n\x1a\n", "unsupported", "an image"),
        ("a.jpg", b"\xff\xd8\xff\xe0", "unsupported", "an image"),
        ("a.webp", b"RIFF\x00\x00\x00\x00WEBP", "unsupported", "an image"),
        ("a.mp3", b"ID3\x04", "unsupported", "a recording. Add a transcript."),
        ("a.mp4", b"\0\0\0\x18ftypmp42", "unsupported", "Add a transcript."),
        ("a.tar", b"a" * 257 + b"ustar", "unsupported", "a tar archive. Unpack it and add the files."),
        ("a.gz", b"\x1f\x8b\x08", "unsupported", "a gzip archive"),
        ("a.db", b"SQLite format 3\0", "unsupported", "a database. Export its tables as CSV."),
        ("a.bin", bytes(range(256)), "unsupported", "a binary file of an unknown format"),
    ],
)
def test_what_is_not_read_says_what_it_is_and_what_to_do(
    tmp_path: Path, name: str, content: bytes, code: str, text: str
) -> None:
    with pytest.raises(ParseError) as caught:
        detected(tmp_path, name, content)

    assert caught.value.code == code
    assert str(caught.value).startswith(f"{name} cannot be read: ")
    assert text in str(caught.value)


def test_an_archive_whose_content_is_damaged_says_so(tmp_path: Path) -> None:
    path = docx(tmp_path / "a.docx", p("a"))
    content = bytearray(path.read_bytes())
    content[60:80] = bytes(20)
    path.write_bytes(content)

    with pytest.raises(ParseError) as caught:
        find_media_type(path)

    assert caught.value.code == "damaged"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"a.txt": "a"}, "it is a zip archive. Unpack it and add the files."),
        ({"mimetype": "application/vnd.oasis.opendocument.text"}, "an OpenDocument file. Save it as DOCX"),
        ({**document_parts(""), "[Content_Types].xml": "ms-excel.sheet.binary.macroEnabled"}, "Save it as XLSX."),
    ],
)
def test_other_archives_are_not_read(tmp_path: Path, parts: dict[str, str | bytes], text: str) -> None:
    with pytest.raises(ParseError) as caught:
        find_media_type(zipped(tmp_path / "a.docx", parts))

    assert caught.value.code == "unsupported"
    assert text in str(caught.value)


@pytest.mark.parametrize("media_type", list(PARSERS))
def test_every_format_has_a_parser(media_type: str) -> None:
    assert callable(find_parser(media_type))


def test_no_ending_belongs_to_two_formats() -> None:
    endings = [ending for each in FORMATS for ending in each.endings]

    assert len(endings) == len(set(endings))


def test_every_format_is_documented() -> None:
    page = (ROOT / "docs/formats.md").read_text()

    assert [each.name for each in FORMATS if f"| {each.name} |" not in page] == []
    assert [ending for each in FORMATS for ending in each.endings if f"`{ending}`" not in page] == []


def test_the_list_of_formats_names_each_once() -> None:
    names = formats_for_people().split(", ")

    assert "PDF" in names
    assert len(names) == len(set(names))


def test_grammars_of_the_extra_are_installed_here() -> None:
    assert find_spec("tree_sitter_python") is not None
