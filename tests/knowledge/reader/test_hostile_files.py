"""Each hostile file is a clear error, and the next file is read."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.execution.sandbox import SandboxProcesses
from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.parsing.limits import ParseLimits
from holdfast.knowledge.reader.protocol import ReadOptions
from holdfast.knowledge.reader.readers import Readers
from tests.knowledge.parsing.office_files import document_parts, docx, p, zipped
from tests.knowledge.parsing.pdf_writer import page_of, write_pdf
from tests.knowledge.reader.conftest import MEMORY_MB, good, hostile, read, read_text
from tests.knowledge.reader.hostile import PARSERS

pytestmark = [pytest.mark.req("KNOW-01"), pytest.mark.req("SAFE-06")]

MEGABYTE = 1024 * 1024
SMALL = ParseLimits(inflated_bytes=8 * MEGABYTE, characters=1_000_000)


def encrypted_pdf(path: Path) -> None:
    write_pdf(path, [page_of("Secret.")], encrypted=True)


def truncated_pdf(path: Path) -> None:
    write_pdf(path, [page_of("Text.")] * 20)
    path.write_bytes(path.read_bytes()[:700])


def truncated_docx(path: Path) -> None:
    docx(path, p("Text. " * 1000))
    path.write_bytes(path.read_bytes()[:-200])


def zip_bomb(path: Path) -> None:
    zipped(path, {**document_parts(""), "word/document.xml": b"<w:p>" + b" " * 40 * MEGABYTE})


def entity_bomb(path: Path) -> None:
    entities = "".join(f'<!ENTITY a{level} "{f"&a{level - 1};" * 10}">' for level in range(1, 12))
    bomb = f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a0 "ha">{entities}]><d>&a11;</d>'
    zipped(path, {**document_parts(""), "word/document.xml": bomb})


def one_line(path: Path) -> None:
    with path.open("wb") as file:
        for _ in range(30):
            file.write(b"word " * (MEGABYTE // 5))


def holes(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1024 * MEGABYTE)


def deep_page(path: Path) -> None:
    path.write_text("<div>" * 100_000 + "<p>At the bottom.</p>" + "</div>" * 100_000)


def picture(path: Path) -> None:
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))


def archive(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("../../etc/cron.d/evil", "* * * * * root true")


def scanned_pdf(path: Path) -> None:
    write_pdf(path, [[], [], []])


def old_word(path: Path) -> None:
    path.write_bytes(
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1000) + "WordDocument".encode("utf-16-le") + bytes(1000)
    )


FILES = [
    ("secret.pdf", encrypted_pdf, "encrypted", "it is encrypted with a password. Save it without a password."),
    ("half.pdf", truncated_pdf, "damaged", "half.pdf cannot be read: it is truncated or damaged."),
    ("half.docx", truncated_docx, "damaged", "half.docx cannot be read: it is an archive that is truncated or damaged"),
    ("scan.pdf", scanned_pdf, "no_text", "it has no text: scanned images need OCR, which is not built in"),
    ("bomb.docx", zip_bomb, "too_large", "bomb.docx"),
    ("entities.docx", entity_bomb, "damaged", "entities.docx"),
    ("line.txt", one_line, "too_large", "line.txt cannot be read: it has more than 1,000,000 characters"),
    ("holes.txt", holes, "unsupported", "it is a binary file of an unknown format"),
    ("deep.html", deep_page, "too_deep", "its elements are nested more than 10,000 deep"),
    ("picture.pdf", picture, "unsupported", "it is an image"),
    ("notes.docx", archive, "unsupported", "it is a zip archive. Unpack it and add the files."),
    ("report.docx", old_word, "unsupported", "a Word document of before 2007 (DOC). Open it and save it as DOCX."),
]


@pytest.mark.parametrize(("name", "make", "code", "text"), FILES, ids=[name for name, *_ in FILES])
async def test_a_hostile_file_is_a_clear_error_and_the_next_file_is_read(
    readers: Readers, tmp_path: Path, name: str, make: Callable[[Path], None], code: str, text: str
) -> None:
    path = tmp_path / name
    make(path)

    with pytest.raises(ParseError) as caught:
        await read(readers, path, options=ReadOptions(limits=SMALL))

    assert caught.value.code == code
    assert text in str(caught.value)
    assert caught.value.next
    assert await read_text(readers, good(tmp_path)) == "A good file after a bad one."


PARSER_FAULTS = [
    ("crash", "crashed", "its parser crashed (signal 11)"),
    ("leave", "crashed", "its parser crashed (exit code 3)"),
    ("fail", "damaged", "ZeroDivisionError: nobody has foreseen this"),
    ("allocate", "too_large", f"it needed more than {MEMORY_MB} MB of memory"),
    ("nest", "too_deep", "it is nested too deep"),
]


@pytest.mark.parametrize(("name", "code", "text"), PARSER_FAULTS, ids=[name for name, *_ in PARSER_FAULTS])
async def test_a_parser_that_fails_ends_its_file_alone(
    readers: Readers, tmp_path: Path, name: str, code: str, text: str
) -> None:
    path, media_type = hostile(tmp_path, name)

    with pytest.raises(ParseError) as caught:
        await read(readers, path, media_type=media_type)

    assert caught.value.code == code
    assert text in str(caught.value)
    assert await read_text(readers, good(tmp_path)) == "A good file after a bad one."


async def test_a_parser_that_never_ends_is_ended(tmp_path: Path) -> None:
    path, media_type = hostile(tmp_path, "loop")

    async with Readers(
        SandboxProcesses(), processes=1, seconds=1.0, folder=tmp_path / "readers", parsers=PARSERS
    ) as readers:
        with pytest.raises(ParseError) as caught:
            await read(readers, path, media_type=media_type)
        text = await read_text(readers, good(tmp_path))

    assert caught.value.code == "too_slow"
    assert "it took longer than 1 seconds" in str(caught.value)
    assert text == "A good file after a bad one."


async def test_the_content_of_a_file_decides_not_its_ending(readers: Readers, tmp_path: Path) -> None:
    path = tmp_path / "page.docx"
    path.write_text("<!DOCTYPE html><html><body><h1>A page</h1><p>It says it is a document.</p></body></html>")

    (part,) = await read(readers, path)

    assert part.media_type == "text/html"
    assert part.chunks[0].chunk.text == "# A page\n\nIt says it is a document."
