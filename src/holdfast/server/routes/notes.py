"""Notes of agents about the caller; with the scope `admin`, about any user."""

from typing import Annotated, Any, get_args

import msgspec
from msgspec.structs import asdict

from holdfast.authorization import Name
from holdfast.conversations.notes import MAX_REVISIONS, OF_SECTIONS, WITH_CONTENT, Note, NoteRevision, Operation
from holdfast.core.errors import Conflict, NotFound, TooLarge
from holdfast.server.fields import NotBlank, documented
from holdfast.server.operations import ApiCall, ApiOperations

operations = ApiOperations("notes")

Version = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_REVISIONS)]


def _edit_schema(operation: Operation) -> dict[str, Any]:
    """Return the schema of an edit with this operation: required arguments are strings, all others are null."""
    needs = {"content": operation in WITH_CONTENT, "section_header": operation in OF_SECTIONS}
    properties = {name: {"type": "string" if needed else "null"} for name, needed in needs.items()}
    required = ["operation", *(name for name, needed in needs.items() if needed)]
    return {"properties": {"operation": {"const": operation}, **properties}, "required": required}


class NoteEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An edit of the notes. A stale `version` is a conflict."""

    operation: Operation
    content: str | None = None
    section_header: NotBlank | None = None
    version: Version | None = None


ARGUMENTS = documented(anyOf=[_edit_schema(operation) for operation in get_args(Operation)])


class NoteRestore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A revision to restore. A stale `version` is a conflict."""

    revision: Version
    version: Version | None = None


class NoteRevisions(msgspec.Struct, frozen=True):
    """Versions of the notes, newest first."""

    revisions: list[NoteRevision]


@operations.declare("GET", "/api/notes", needs="read", errors=[TooLarge])
async def read_notes(call: ApiCall, agent_id: Name, user: Name | None = None) -> Note:
    """Get an agent's notes about the user."""
    return await call.engine.notes.read(user=await call.authorization.user(user), agent=agent_id)


@operations.declare("PUT", "/api/notes", needs="write", errors=[NotFound, Conflict])
async def edit_notes(
    call: ApiCall, agent_id: Name, body: Annotated[NoteEdit, ARGUMENTS], user: Name | None = None
) -> Note:
    """Edit the notes, and return the result."""
    return await call.engine.notes.edit(user=await call.authorization.user(user), agent=agent_id, **asdict(body))


@operations.declare("GET", "/api/notes/revisions", needs="read", errors=[TooLarge])
async def list_note_revisions(
    call: ApiCall, agent_id: Name, user: Name | None = None, limit: Limit = MAX_REVISIONS, before: Version | None = None
) -> NoteRevisions:
    """List the versions of the notes, newest first; with `before`, those before a version."""
    found = await call.engine.notes.revisions(
        user=await call.authorization.user(user), agent=agent_id, limit=limit, before=before
    )
    return NoteRevisions(found)


@operations.declare("POST", "/api/notes/restore", needs="write", errors=[NotFound, Conflict])
async def restore_notes(call: ApiCall, agent_id: Name, body: NoteRestore, user: Name | None = None) -> Note:
    """Restore a former version of the notes, as a new version."""
    return await call.engine.notes.restore(user=await call.authorization.user(user), agent=agent_id, **asdict(body))
