"""`holdfast notes`: show and edit agents' notes about users."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.api import reach
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.output import printable
from holdfast.core.errors import HoldfastError, InvalidInput

app = group("Show and edit agents' notes about users: a Markdown document that is part of every prompt.")

User = Annotated[str | None, typer.Option(metavar="NAME", help="User that the notes are about. [default: yourself]")]
Agent = Annotated[str, typer.Option(metavar="NAME", help="Agent that keeps the notes.")]


class NotesDraft:
    """Notes in a temporary file that a person edits. The file is kept until it is discarded."""

    def __init__(self, notes: str) -> None:
        # Editors add a line end to the last line. That is not a change.
        ended = notes if not notes or notes.endswith("\n") else notes + "\n"
        self._before = ended.encode(errors="surrogatepass")
        self.path = Path(tempfile.mkdtemp(prefix="holdfast-")) / "notes.md"
        self.path.write_bytes(self._before)

    def edit(self, editor: str) -> str | None:
        """Open the editor and wait. Return the text, or None if it is empty or unchanged."""
        _run(editor, self.path)
        try:
            after = self.path.read_bytes().decode(errors="surrogatepass")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput("the edited file cannot be read", why=str(error), next="Save it as UTF-8.") from None
        return after if after.strip() and self.is_changed() else None

    def is_changed(self) -> bool:
        """Return whether the file has changed."""
        return self.path.is_file() and self.path.read_bytes() != self._before

    def discard(self) -> None:
        """Remove the file."""
        shutil.rmtree(self.path.parent)


@command(app)
async def show(invocation: Invocation, user: User = None, agent: Agent = "default") -> None:
    """Show the notes."""
    async with reach(invocation) as api:
        note = await api.call("read_notes", agent_id=agent, user=user)
    if invocation.json or note["notes"]:
        invocation.output.value(format_notes(note["notes"], terminal=sys.stdout.isatty()), note)
    else:
        invocation.output.say(f"{agent} has no notes about {note['user']}.")


@command(app)
async def edit(
    invocation: Invocation,
    user: User = None,
    agent: Agent = "default",
    operation: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="overwrite, append, prepend, delete_section_by_header, replace_section_by_header, delete_all_notes. "
            "[default: append if --content is given, else an editor opens]",
        ),
    ] = None,
    content: Annotated[str | None, typer.Option(metavar="TEXT", help="Text to write; - reads it from stdin.")] = None,
    section: Annotated[str | None, typer.Option(metavar="HEADER", help="Header of the section.")] = None,
) -> None:
    """Edit the notes in your editor, or with one operation. The editor is $VISUAL or $EDITOR.

    \b
    holdfast notes edit --user ann --agent support
    holdfast notes edit --user ann --content "Prefers tea."
    holdfast notes edit --user ann --operation replace_section_by_header --section "## Tasks" --content - < tasks.md
    """
    owner = {"agent_id": agent, "user": user}
    if operation is None and content is None and section is None:
        await _edit_by_hand(invocation, owner)
        return
    operation, text = operation or "append", _from_stdin() if content == "-" else content
    async with reach(invocation) as api:
        note = await api.call("edit_notes", **owner, operation=operation, content=text, section_header=section)
    _report(invocation, note)


async def _edit_by_hand(invocation: Invocation, owner: dict[str, str | None]) -> None:
    editor = _editor()
    async with reach(invocation) as api:
        note = await api.call("read_notes", **owner)
    # Keep no connection open meanwhile: an editor may stay open for days.
    draft = NotesDraft(note["notes"])
    try:
        text = draft.edit(editor)
        if text is not None:
            async with reach(invocation) as api:
                edit = {"operation": "overwrite", "content": text, "version": note["version"]}
                note = await api.call("edit_notes", **owner, **edit)
    except HoldfastError as error:
        if draft.is_changed():
            error.add_note(f"Your text is kept in {draft.path}")
        else:
            draft.discard()
        raise
    draft.discard()
    if text is None:
        invocation.output.record(note)
        invocation.output.say("Nothing was changed. To delete the notes, use `--operation delete_all_notes`.")
    else:
        _report(invocation, note)


def format_notes(notes: str, *, terminal: bool) -> str:
    """Format the notes for printing. For a terminal, escape control characters that a model has written."""
    notes = notes.removesuffix("\n")
    return printable(notes.replace("\r\n", "\n")) if terminal else notes


def _report(invocation: Invocation, note: dict[str, Any]) -> None:
    invocation.output.record(note)
    invocation.output.say(f"The notes of {note['agent']} about {note['user']} now have version {note['version']}.")


def _editor() -> str:
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not chosen and not sys.stdin.isatty():
        raise InvalidInput(
            "there is no editor to open",
            why="neither VISUAL nor EDITOR is set, and there is no terminal",
            next="Set one, or give --operation and --content.",
        )
    return chosen or "vi"


def _ignore_signal(signal: int, frame: object) -> None: ...


def _run(editor: str, path: Path) -> None:
    # The editor handles Ctrl-C. It does not inherit a handler, but it would inherit SIG_IGN.
    before = signal.signal(signal.SIGINT, _ignore_signal)
    try:
        # Use the shell, as git does: the command may have options.
        code = subprocess.run(["sh", "-c", f'{editor} "$@"', editor, str(path)]).returncode
    finally:
        signal.signal(signal.SIGINT, before)
    if code != 0:
        raise HoldfastError(
            f"the editor {editor!r} failed with exit code {code}", next="The notes are unchanged. Try again."
        )


def _from_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            "stdin cannot be read", why=f"it is not UTF-8 (byte {error.start})", next="Send text in UTF-8."
        ) from None
