"""Hostile and damaged archives: a clear error each, and nothing is read that was not asked for."""

import io
import pickle
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.knowledge.parsing.docx import parse as parse_docx
from holdfast.knowledge.parsing.epub import parse as parse_epub
from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.parsing.limits import ParseLimits
from holdfast.knowledge.parsing.pptx import parse as parse_pptx
from holdfast.knowledge.parsing.units import Unit
from holdfast.knowledge.parsing.xlsx import parse as parse_xlsx
from tests.knowledge.parsing.office_files import ROOT, document_parts, docx, p, pptx, sheet_rows, xlsx, zipped

MAIN = "word/document.xml"
SMALL = ParseLimits(inflated_bytes=4 * 1024 * 1024)


def failure(
    path: Path, limits: ParseLimits | None = None, parse: Callable[..., Iterator[Unit]] = parse_docx
) -> ParseError:
    """The error of a file that is not read."""
    with pytest.raises(ParseError) as caught:
        list(parse(path, limits=limits or ParseLimits()))
    error = caught.value
    assert error.why
    assert error.next
    return error


def with_document(path: Path, document: str | bytes) -> Path:
    return zipped(path, {**document_parts(""), MAIN: document})


@pytest.mark.req("KNOW-05")
@pytest.mark.parametrize(
    ("content", "code", "why"),
    [
        (b"", "damaged", "empty"),
        (b"%PDF-1.7\n%more", "not_this_format", "a PDF"),
        (b"<html><body>no</body></html>", "not_this_format", "HTML or XML"),
        (b"{\\rtf1 no}", "not_this_format", "RTF"),
        (b"plain words", "not_this_format", "another kind"),
        (b"PK\x03\x04" + bytes(200), "damaged", "its end is missing"),
    ],
)
def test_a_file_with_a_wrong_ending_says_what_it_is(tmp_path: Path, content: bytes, code: str, why: str) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(content)

    error = failure(path)

    assert error.code == code
    assert why in error.why


def test_a_plain_archive_is_no_office_file(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.docx", {"readme.txt": "hello"})

    assert failure(path).code == "not_this_format"
    assert failure(path, parse=parse_epub).code == "not_this_format"


def test_an_office_file_of_another_kind_is_named(tmp_path: Path) -> None:
    book = xlsx(tmp_path / "book.docx", {"One": sheet_rows({1: {"A": "x"}})})
    show = pptx(tmp_path / "show.xlsx", [])

    assert "an XLSX file" in failure(book).why
    assert "a PPTX file" in failure(show, parse=parse_xlsx).why
    assert failure(book, parse=parse_pptx).code == "not_this_format"


@pytest.mark.parametrize(
    ("name", "code"),
    [("EncryptedPackage", "encrypted"), ("WordDocument", "unsupported"), ("Catalog", "not_this_format")],
)
def test_the_old_container_says_whether_it_is_encrypted(tmp_path: Path, name: str, code: str) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2**20 - 20) + name.encode("utf-16-le") + bytes(512))

    assert failure(path).code == code


@pytest.mark.req("KNOW-05")
def test_a_truncated_file_is_damaged_wherever_it_ends(tmp_path: Path) -> None:
    body = "".join(p(f"Paragraph {number} of a document that is cut.") for number in range(500))
    whole = docx(tmp_path / "whole.docx", body).read_bytes()

    for share in (0.1, 0.5, 0.9, 0.99):
        path = tmp_path / "cut.docx"
        path.write_bytes(whole[: int(len(whole) * share)])
        assert failure(path).code == "damaged"


def test_changed_bytes_are_damage(tmp_path: Path) -> None:
    path = docx(tmp_path / "a.docx", "".join(p(f"Paragraph {number}.") for number in range(500)))
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        place = archive.getinfo(MAIN).header_offset + 60
    content[place : place + 40] = bytes(40)
    path.write_bytes(content)

    assert failure(path).code == "damaged"


@pytest.mark.req("KNOW-05")
def test_a_zip_bomb_is_refused_while_it_inflates(tmp_path: Path) -> None:
    bomb = (b"<w:p>" + b" " * 100_000 + b"</w:p>") * 500
    path = with_document(tmp_path / "bomb.docx", f"<w:document {ROOT}><w:body>".encode() + bomb)

    assert failure(path, SMALL).code == "too_large"
    assert "500 times" in failure(path).why


def test_a_bomb_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    document = f"<w:document {ROOT}><w:body>".encode() + b"<w:p/>" * 1_000_000 + b"</w:body></w:document>"
    path = with_document(tmp_path / "bomb.docx", document)
    content = path.read_bytes()
    path.write_bytes(content.replace(struct.pack("<I", len(document)), struct.pack("<I", 100)))

    assert failure(path, SMALL).code in {"too_large", "damaged"}


def test_an_archive_with_too_many_parts_is_refused(tmp_path: Path) -> None:
    parts = document_parts(p("text"))
    path = zipped(tmp_path / "a.docx", {**parts, **{f"word/media/{number}": "" for number in range(200)}})

    assert failure(path, ParseLimits(archive_entries=100)).code == "too_large"
    assert next(parse_docx(path)).text == "text"


def test_an_index_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = docx(tmp_path / "a.docx", p("text"))
    content = bytearray(path.read_bytes())
    end = content.rfind(b"PK\x05\x06")
    struct.pack_into("<I", content, end + 12, 2**31)
    path.write_bytes(content)

    assert failure(path).code == "too_large"


@pytest.mark.req("KNOW-05")
def test_paths_that_leave_the_archive_reach_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "secret.xml"
    secret.write_text(f"<w:document {ROOT}><w:body>{p('secret')}</w:body></w:document>")
    parts = document_parts(p("text"))
    for target in (f"../../../..{secret}", str(secret), f"file://{secret}", "..\\..\\secret.xml"):
        rels = str(parts["_rels/.rels"]).replace(MAIN, target)
        path = zipped(tmp_path / "a.docx", {**parts, "_rels/.rels": rels})
        assert failure(path).code == "damaged"


def test_names_that_would_leave_the_folder_are_never_extracted(tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    path = zipped(folder / "a.docx", {**document_parts(p("text")), "../escaped": "x", f"{tmp_path}/absolute": "x"})

    units = list(parse_docx(path))

    assert units[0].text == "text"
    assert [each.name for each in tmp_path.iterdir()] == ["inside"]


def test_two_parts_of_one_name_are_refused(tmp_path: Path) -> None:
    path = docx(tmp_path / "a.docx", p("shown to one program"))
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(MAIN, f"<w:document {ROOT}><w:body>{p('and this to another')}</w:body></w:document>")

    assert "two parts" in failure(path).why


def test_names_may_differ_in_case_and_have_backslashes(tmp_path: Path) -> None:
    parts = {name.replace("/", "\\").upper(): content for name, content in document_parts(p("text")).items()}

    assert next(parse_docx(zipped(tmp_path / "a.docx", parts))).text == "text"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.xml"
    secret.write_text(f"<w:document {ROOT}><w:body>{p('secret')}</w:body></w:document>")
    path = tmp_path / "a.docx"
    parts = document_parts("")
    del parts[MAIN]
    zipped(path, parts)
    link = zipfile.ZipInfo(MAIN)
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, str(secret))

    assert "a link" in failure(path).why


def test_a_part_with_a_password_is_encrypted(tmp_path: Path) -> None:
    content = bytearray(docx(tmp_path / "a.docx", p("text")).read_bytes())
    for magic, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := content.find(magic, at + 1)) >= 0:
            content[at + flags] |= 1
    path = tmp_path / "locked.docx"
    path.write_bytes(content)

    assert failure(path).code == "encrypted"


def test_methods_that_office_does_not_use_are_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.docx", document_parts(p("text")), method=zipfile.ZIP_LZMA)

    assert failure(path).code == "unsupported"


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    parts = document_parts(p("text"))
    del parts[MAIN]
    assert "main part" in failure(zipped(tmp_path / "a.docx", parts)).why

    book = xlsx(tmp_path / "a.xlsx", {"One": sheet_rows({1: {"A": "x"}})})
    with zipfile.ZipFile(book) as archive:
        rest = {name: archive.read(name) for name in archive.namelist() if "sheet1" not in name}
    assert "`One` is missing" in failure(zipped(tmp_path / "b.xlsx", rest), parse=parse_xlsx).why


BOMB = "<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
    f"<!ENTITY {chr(98 + at)} '{f'&{chr(97 + at)};' * 10}'>" for at in range(12)
)


@pytest.mark.req("KNOW-05")
@pytest.mark.parametrize(
    "document",
    [
        f"{BOMB}]><w:document {ROOT}><w:body>{p('X')}</w:body></w:document>".replace("X", "&m;"),
        f"{BOMB}]><w:document {ROOT} v='&m;'><w:body/></w:document>",
        f"<!DOCTYPE x [<!ENTITY e SYSTEM 'SECRET'>]><w:document {ROOT}><w:body>&e;</w:body></w:document>",
        f"<!DOCTYPE x [<!ENTITY % e SYSTEM 'SECRET'>%e;]><w:document {ROOT}><w:body/></w:document>",
        f"<!DOCTYPE x SYSTEM 'SECRET'><w:document {ROOT}><w:body/></w:document>",
        f"<!DOCTYPE x><w:document {ROOT}><w:body/></w:document>",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_documents_that_define_entities_are_refused(tmp_path: Path, document: str, encoding: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    path = with_document(tmp_path / "a.docx", document.replace("SECRET", secret.as_uri()).encode(encoding))

    error = failure(path)

    assert error.code == "damaged"
    assert "secret" not in f"{error}".replace(secret.as_uri(), "")


@pytest.mark.req("KNOW-05")
def test_elements_that_are_nested_too_deep_are_refused(tmp_path: Path) -> None:
    deep = "<w:p>" + "<w:smartTag>" * 400 + "</w:smartTag>" * 400 + "</w:p>"

    assert failure(docx(tmp_path / "a.docx", deep)).code == "too_deep"
    less = "<w:p>" + "<w:smartTag>" * 90 + "<w:r><w:t>deep</w:t></w:r>" + "</w:smartTag>" * 90 + "</w:p>"
    assert next(parse_docx(docx(tmp_path / "b.docx", less))).text == "deep"
    assert failure(docx(tmp_path / "b.docx", less), ParseLimits(depth=50)).code == "too_deep"


def test_xml_that_is_not_well_formed_is_damage(tmp_path: Path) -> None:
    path = with_document(tmp_path / "a.docx", f"<w:document {ROOT}><w:body><w:p></w:body>")

    assert "not well-formed" in failure(path).why


def test_a_text_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = docx(tmp_path / "a.docx", "".join(p("word " * 200) for _ in range(100)))

    assert failure(path, ParseLimits(characters=50_000)).code == "too_large"
    assert failure(path, ParseLimits(units=1)).code == "too_large"


def test_an_error_survives_pickling() -> None:
    error = ParseError("the file cannot be read", code="damaged", why="its end is missing", next="Copy it again.")

    copy: ParseError = pickle.load(io.BytesIO(pickle.dumps(error)))

    assert (copy.what, copy.code, copy.why, copy.next) == (error.what, error.code, error.why, error.next)
    assert str(copy) == "the file cannot be read: its end is missing. Copy it again."
