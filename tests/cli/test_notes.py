"""Notes, each test with a running server and without one: there must be no difference."""

from pathlib import Path
from uuid import uuid4

import pytest

from holdfast.cli.notes import format_notes
from tests.cli.program import MODULE, Program

pytestmark = pytest.mark.req("UI-02", "NOTE-02")

START = "# Drinks\n\ntea\n\n# Tasks\n\n- call\n"


@pytest.fixture
def ann(served: Program) -> list[str]:
    """The options that mean a user with notes."""
    options = ["--user", f"ann & {uuid4().hex[:8]}", "--agent", "süpport"]
    done = served("notes", "edit", *options, "--operation", "overwrite", "--content", START)
    assert done.code == 0, done.stderr
    return options


@pytest.fixture
def editor(tmp_path: Path) -> Path:
    """A place for an editor of the test's own: a script that is given the file."""
    return tmp_path / "the editor.sh"


def by(editor: Path, script: str) -> dict[str, str]:
    """The environment of a call in which the editor does this."""
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o755)
    return {"VISUAL": f"'{editor}' --wait", "EDITOR": "false", "TMPDIR": str(editor.parent)}


def test_notes_are_shown_as_text_or_as_a_record(served: Program, ann: list[str]) -> None:
    text = served("notes", "show", *ann)
    record = served("notes", "show", *ann, "--json")

    assert (text.stdout, text.stderr) == (START, "")
    assert (record.json["notes"], record.json["version"]) == (START, 1)
    assert [record.json["user"], record.json["agent"]] == [ann[1], ann[3]]


def test_where_nothing_is_noted_nothing_is_printed(served: Program) -> None:
    done = served("notes", "show", "--user", uuid4().hex)

    assert (done.code, done.stdout) == (0, "")
    assert "default has no notes" in done.stderr


def test_an_operation_edits_the_notes(served: Program, ann: list[str]) -> None:
    section = ["--operation", "replace_section_by_header", "--section", "# Drinks", "--content", "coffee"]
    replaced = served("notes", "edit", *ann, *section)
    appended = served("notes", "edit", *ann, "--content", "# More", "--json")

    assert (replaced.code, replaced.stdout) == (0, "")
    assert "version 2" in replaced.stderr
    assert appended.json["notes"] == "# Drinks\n\ncoffee\n\n# Tasks\n\n- call\n\n# More"


def test_content_is_read_from_stdin(served: Program, ann: list[str]) -> None:
    done = served("notes", "edit", *ann, "--content", "-", typed="grün")
    broken = served("notes", "edit", *ann, "--content", "-", typed=b"\xff")

    assert done.code == 0
    assert (broken.code, "not UTF-8" in broken.stderr) == (2, True)
    assert served("notes", "show", *ann).stdout == START + "\ngrün\n"


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--operation", "append"], 2, "append requires content"),
        (["--operation", "burn", "--content", "x"], 2, "burn"),
        (["--section", "Drinks", "--content", "x"], 2, "append does not take section_header"),
        (["--operation", "delete_section_by_header", "--section", "Food"], 3, "# Drinks, # Tasks"),
        (["--agent", "\udcff", "--content", "x"], 2, "not UTF-8"),
        ([], 2, "neither VISUAL nor EDITOR is set"),
    ],
)
def test_an_edit_that_cannot_be_made_is_refused(
    served: Program, ann: list[str], options: list[str], code: int, said: str
) -> None:
    done = served("notes", "edit", *ann, *options, environment={"VISUAL": "", "EDITOR": ""})

    assert (done.code, done.stdout) == (code, "")
    assert said in done.stderr
    assert served("notes", "show", *ann).stdout == START


def test_without_an_operation_the_notes_open_in_the_editor(served: Program, ann: list[str], editor: Path) -> None:
    environment = by(editor, f'test "$1" = --wait && cp "$2" {editor.parent}/seen && echo "- write" >> "$2"')

    done = served("notes", "edit", *ann, environment=environment)

    assert (done.code, done.stdout) == (0, ""), done.stderr
    assert (editor.parent / "seen").read_text() == START
    assert served("notes", "show", *ann).stdout == START + "- write\n"
    assert list(editor.parent.glob("holdfast-*")) == []


@pytest.mark.parametrize(
    ("script", "code"), [("true", 0), (': > "$2"', 0), ("exit 3", 1), ("kill -INT $$", 1)], ids=str
)
def test_an_edit_that_is_given_up_changes_nothing(
    served: Program, ann: list[str], editor: Path, script: str, code: int
) -> None:
    done = served("notes", "edit", *ann, environment=by(editor, script))

    assert done.code == code
    assert served("notes", "show", *ann, "--json").json["version"] == 1
    assert list(editor.parent.glob("holdfast-*")) == []


@pytest.mark.req("NOTE-03")
def test_an_edit_that_someone_else_overtook_is_a_conflict_and_its_text_is_kept(
    served: Program, ann: list[str], editor: Path
) -> None:
    meanwhile = [*MODULE, "notes", "edit", *ann, "--content", "meanwhile"]
    script = " ".join(f"'{word}'" for word in meanwhile) + ' && echo mine >> "$2"'

    done = served("notes", "edit", *ann, environment=by(editor, script))

    assert done.code == 5
    (kept,) = editor.parent.glob("holdfast-*/notes.md")
    assert f"Your text is kept in {kept}" in done.stderr
    assert kept.read_text() == START + "mine\n"
    assert served("notes", "show", *ann).stdout == START + "\nmeanwhile\n"


def test_a_terminal_obeys_nothing_that_was_noted() -> None:
    notes = "a\r\n\x1b[31mred\tb\n"

    assert format_notes(notes, terminal=True) == "a\n\\x1b[31mred\tb"
    assert format_notes(notes, terminal=False) == notes.removesuffix("\n")
