"""Documents on the command line: folders are added, searched, read and removed, against a server that runs."""

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from holdfast.cli.document_files import DocumentFile, find_files
from holdfast.core.errors import InvalidInput, NotFound
from tests.cli.conftest import Place, serving
from tests.cli.page import Page
from tests.cli.program import Done, Program
from tests.cli.terminal import CTRL_C, Terminal

pytestmark = pytest.mark.req("KNOW-01", "KNOW-05", "UI-02")

HANDBOOK = """# Travel

## Approval

Managers approve every trip before it is booked.

## Hotels

A night costs at most 150 euros.
"""
PAGE = "<html><head><title>Cantine</title></head><body><h1>Lunch</h1><p>Soup is served at noon.</p></body></html>"
WORD = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>
<w:p><w:r><w:t>Parking lots are reserved for visitors.</w:t></w:r></w:p></w:body></w:document>"""
TYPES = """<?xml version="1.0" encoding="UTF-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Override PartName="/word/document.xml"
 ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"""
RELATIONS = """<?xml version="1.0" encoding="UTF-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1"
 Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
 Target="word/document.xml"/></Relationships>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files of several formats, and what is no document."""
    folder = tmp_path / "papers"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("hidden")
    (folder / ".hidden.md").write_text("hidden")
    (folder / "handbook.md").write_text(HANDBOOK)
    (folder / "sub" / "lunch.html").write_text(PAGE)
    (folder / "sub" / "cats.txt").write_text("Cats sleep for sixteen hours a day.")
    (folder / "picture.raw").write_bytes(b"\x89\x00\x01")
    (folder / "empty.txt").write_bytes(b"")
    with zipfile.ZipFile(folder / "parking.docx", "w") as word:
        for name, text in (("[Content_Types].xml", TYPES), ("_rels/.rels", RELATIONS), ("word/document.xml", WORD)):
            word.writestr(name, text)
    return folder


@pytest.fixture
def collection() -> str:
    """A collection that nobody else has."""
    return f"papers-{uuid4().hex[:8]}"


def add(served: Program, *words: str | Path, typed: str = "") -> Done:
    return served("knowledge", "add", *map(str, words), typed=typed)


def names(served: Program, collection: str, *words: str) -> list[str]:
    done = served("knowledge", "ls", "--collection", collection, "--json", *words)
    assert done.code == 0, done
    return sorted(each["name"] for each in done.json)


@pytest.mark.acceptance
def test_a_new_user_adds_a_folder_searches_it_asks_about_it_and_removes_it(
    served: Program, folder: Path, collection: str
) -> None:
    added = add(served, folder, "--collection", collection, "--metadata", "year=2026")
    again = add(served, folder, "--collection", collection, "--metadata", "year=2026")
    (folder / "handbook.md").write_text(HANDBOOK.replace("150", "180"))
    changed = add(served, folder, "--collection", collection)
    found = served("knowledge", "search", "How much is a hotel night?", "--collection", collection)
    narrow = served(
        "knowledge", "search", "parking", "--document", "parking.docx", "--where", '{"year": 2026}', "--json"
    )
    asked = served("chat", typed="When is soup served at noon?")
    told = served("chat", typed="How much may a night cost?")
    removed = served("knowledge", "rm", "--collection", collection)

    assert added.code == 0, added
    assert sorted(line.partition(" (")[0] for line in added.stdout.splitlines()) == [
        "handbook.md", "parking.docx", "sub/cats.txt", "sub/lunch.html",
    ]  # fmt: skip
    assert "Skipped picture.raw: it is a binary file that no parser reads." in added.stderr
    assert "Skipped empty.txt: it is empty." in added.stderr
    assert added.stderr.endswith("Added 4 documents, 2 skipped.\n")
    assert (again.stdout, again.stderr.splitlines()[-1]) == ("", "Added 0 documents, 4 unchanged, 2 skipped.")
    assert changed.stdout == "handbook.md (1 chunk)\n"
    head, first, *_ = found.stdout.splitlines()
    assert head.split() == ["DOCUMENT", "SECTION", "PAGE", "SCORE", "EXCERPT"]
    assert first.startswith("handbook.md")
    assert "180 euros" in first
    assert "holdfast models fetch" in found.stderr
    assert [hit["name"] for hit in narrow.json["hits"]] == ["parking.docx"]
    assert asked.stdout.strip() == "Soup is served at noon. [sub/lunch.html]"
    assert told.stdout.strip() == "A night costs at most 180 euros. [handbook.md]"
    assert removed.stderr == "Removed 4 documents.\n"
    assert names(served, collection) == []


def test_files_that_fail_are_reported_and_the_others_are_added(served: Program, folder: Path, collection: str) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 broken")

    done = add(served, folder, "--collection", collection)
    as_json = add(served, folder, "--collection", collection, "--json")
    listed = served("knowledge", "ls", "--collection", collection, "--status", "failed")
    jobs = served("knowledge", "jobs", "--state", "failed", "--json")
    [job] = [each["id"] for each in jobs.json if each["collection"] == collection]
    retried = served("knowledge", "retry", job[:23])

    assert done.code == 1
    assert len(done.stdout.splitlines()) == 4
    assert "Failed broken.pdf: " in done.stderr
    assert done.stderr.splitlines()[-1] == "Added 4 documents, 2 skipped, 1 failed."
    assert as_json.code == 1
    assert list(as_json.json["failed"]) == ["broken.pdf"]
    assert sorted(as_json.json["unchanged"]) == ["handbook.md", "parking.docx", "sub/cats.txt", "sub/lunch.html"]
    assert set(as_json.json["skipped"]) == {"picture.raw", "empty.txt"}
    assert "broken.pdf" in listed.stdout
    assert (retried.code, retried.stderr) == (0, "Retrying 1 job.\n")


def test_a_document_is_shown_read_and_changed_by_its_name_or_its_id(served: Program, collection: str) -> None:
    name = f"{collection}.md"
    added = add(served, "-", "--name", name, "--collection", collection, "--json", typed=HANDBOOK)
    [document] = added.json["added"]

    shown = served("knowledge", "show", name)
    section = served("knowledge", "read", document["id"][:23], "--section", "hotels")
    whole = served("knowledge", "read", document["id"])
    edited = served("knowledge", "edit", name, "--title", "Rules", "--metadata", "year=2026", "--json")
    missing = served("knowledge", "read", "no-such-document.md")
    without = served("knowledge", "rm")

    assert document["hash"] == hashlib.sha256(HANDBOOK.encode()).hexdigest()
    assert shown.stdout.splitlines()[0] == name
    assert "Travel\n  Approval\n  Hotels" in shown.stdout
    assert section.stdout.strip() == "## Hotels\n\nA night costs at most 150 euros."
    assert whole.stdout.strip() == HANDBOOK.strip()
    assert (edited.json["title"], edited.json["metadata"]) == ("Rules", {"year": 2026})
    assert (missing.code, "`holdfast knowledge ls` lists them" in missing.stderr) == (3, True)
    assert without.code == 2


@pytest.mark.req("SAFE-02")
def test_documents_of_a_user_are_counted_exported_and_erased(served: Program, collection: str) -> None:
    ann = f"ann-{collection}"
    add(served, "-", "--name", "diary.md", "--collection", collection, "--user", ann, typed="Dear diary.")

    counted = served("knowledge", "collections", "--user", ann, "--json")
    exported = served("knowledge", "export", "--user", ann)
    unsure = served("knowledge", "erase", "--user", ann)
    erased = served("knowledge", "erase", "--user", ann, "--yes")

    lines = [json.loads(line) for line in exported.stdout.splitlines()]
    assert counted.json == [{"name": collection, "documents": 1, "chunks": 1}]
    assert lines[1]["document"]["name"] == "diary.md"
    assert lines[2]["chunk"]["text"] == "Dear diary."
    assert (unsure.code, "--yes" in unsure.stderr) == (2, True)
    assert (erased.code, erased.stderr) == (0, f"Erased 1 document of user {ann}.\n")
    assert names(served, collection, "--user", ann) == []


def test_without_waiting_the_command_ends_when_the_files_are_uploaded(
    served: Program, folder: Path, collection: str
) -> None:
    done = add(served, folder / "handbook.md", folder / "sub" / "*.html", "--collection", collection, "--no-wait")

    assert (done.code, done.stdout) == (0, "handbook.md\nlunch.html\n")
    assert done.stderr == "Uploaded 2 documents.\n"
    assert names(served, collection) == ["handbook.md", "lunch.html"]


def test_at_a_terminal_a_bar_shows_the_progress_and_ctrl_c_stops_and_says_what_goes_on(
    served: Program, tmp_path: Path, collection: str, at_terminal: Callable[..., Terminal]
) -> None:
    large = tmp_path / "large.txt"
    large.write_text("".join(f"Line {number} of a text that is long.\n" for number in range(400_000)))
    terminal = at_terminal(served, "knowledge", "add", str(large), "--collection", collection, kind="xterm")
    terminal.wait_for("0/1 files")

    code = terminal.press_until_it_ends(CTRL_C)
    listed = names(served, collection)
    removed = served("knowledge", "rm", "large.txt", "--collection", collection)

    assert code == 130
    assert "Stopped." in terminal.shown
    assert "Run the command again to add the rest." in terminal.shown
    assert listed in ([], ["large.txt"])
    assert removed.code == (0 if listed else 3)


# What is found, without a server


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder above the files, as the working folder."""
    monkeypatch.chdir(folder.parent)
    return folder.parent


def found(*paths: str, name: str | None = None) -> list[str]:
    return [each.name for each in find_files(paths, name, Path()).files]


def test_names_are_relative_to_the_folder_that_is_given(here: Path) -> None:
    assert found("papers") == ["handbook.md", "parking.docx", "sub/cats.txt", "sub/lunch.html"]
    assert found("papers/sub") == ["cats.txt", "lunch.html"]
    assert found("papers/sub/cats.txt") == ["cats.txt"]
    assert found("papers/**/*.html", "papers/handbook.md") == ["lunch.html", "handbook.md"]
    assert found("papers/handbook.md", name="rules") == ["rules"]


def test_files_of_one_name_are_named_by_their_paths_and_folders_with_one_name_twice_are_refused(here: Path) -> None:
    (here / "more").mkdir()
    (here / "more" / "handbook.md").write_text("More.")

    assert found("papers/handbook.md", "more/handbook.md") == ["papers/handbook.md", "more/handbook.md"]
    with pytest.raises(InvalidInput, match="two files would be the document"):
        found("papers", "more")


def test_what_is_no_file_is_refused_before_anything_is_sent(here: Path) -> None:
    with pytest.raises(NotFound, match="there is no file or folder"):
        found("nothing.md")
    with pytest.raises(NotFound, match="there is no file or folder"):
        found("papers/*.xyz")
    with pytest.raises(InvalidInput, match="stdin has no name"):
        found("-")
    with pytest.raises(InvalidInput, match="--name names one document"):
        found("papers", name="x")


def test_the_media_type_comes_from_the_name() -> None:
    names = ("a.md", "a.epub", "a.pdf", "a.unheard-of", "a")

    types = [DocumentFile(Path(name), name, 1).media_type for name in names]

    assert types == ["text/markdown", "application/epub+zip", "application/pdf", "", ""]


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="curl or jq is missing")
@pytest.mark.req("KNOW-03")
def test_every_example_of_the_page_works(place: Place, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    program = Program(tmp_path / "home", place())  # without the documents of other tests

    with serving(program):
        page = Page("knowledge.md", program, tmp_path)
        first, *_ = page.run_all()

    assert page.languages == ["sh", "sh", "python", "sh"]
    assert "150 euros. [handbook.md]" in first.stdout
