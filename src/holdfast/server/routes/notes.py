"""The notes about the caller; who administers the tenant may name another user."""

from typing import Annotated, Any, get_args

import msgspec

from holdfast.conversations.notes import MAX_REVISIONS, OF_SECTIONS, WITH_CONTENT, Note, NoteRevision, Operation
from holdfast.core.errors import Conflict, NotFound, TooLarge
from holdfast.server.fields import NotBlank, stated
from holdfast.server.operations import Call, Operations

operations = Operations("notes")

Name = Annotated[str, msgspec.Meta(min_length=1)]
Version = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_REVISIONS)]


def _takes(operation: Operation) -> dict[str, Any]:
    """What an edit of this kind looks like: which arguments it needs, and which it does not take."""
    needs = {"content": operation in WITH_CONTENT, "section_header": operation in OF_SECTIONS}
    properties = {name: {"type": "string" if needed else "null"} for name, needed in needs.items()}
    required = ["operation", *(name for name, needed in needs.items() if needed)]
    return {"properties": {"operation": {"const": operation}, **properties}, "required": required}


class NoteEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An edit of the notes. With a version it is made only if that is the current one."""

    operation: Operation
    content: str | None = None
    section_header: NotBlank | None = None
    version: Version | None = None


ARGUMENTS = stated(anyOf=[_takes(operation) for operation in get_args(Operation)])


class NoteRestore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A revision to bring back. With a version it is done only if that is the current one."""

    revision: Version
    version: Version | None = None


class NoteRevisions(msgspec.Struct, frozen=True):
    """Versions of the notes, the newest first."""

    revisions: list[NoteRevision]


@operations.declare("GET", "/api/notes", needs="read", errors=[TooLarge])
async def read_notes(call: Call, agent_id: Name, user: Name | None = None) -> Note:
    """What an agent has noted about the user."""
    return await call.engine.notes.read(user=await call.authorization.user(user), agent=agent_id)


@operations.declare("PUT", "/api/notes", needs="write", errors=[NotFound, Conflict])
async def edit_notes(
    call: Call, agent_id: Name, body: Annotated[NoteEdit, ARGUMENTS], user: Name | None = None
) -> Note:
    """Change the notes, and return them as they are now."""
    return await call.engine.notes.edit(
        user=await call.authorization.user(user),
        agent=agent_id,
        operation=body.operation,
        content=body.content,
        section_header=body.section_header,
        version=body.version,
    )


@operations.declare("GET", "/api/notes/revisions", needs="read", errors=[TooLarge])
async def list_note_revisions(
    call: Call, agent_id: Name, user: Name | None = None, limit: Limit = MAX_REVISIONS, before: Version | None = None
) -> NoteRevisions:
    """The versions that the notes have had, the newest first; `before` one of them for those further back."""
    found = await call.engine.notes.revisions(
        user=await call.authorization.user(user), agent=agent_id, limit=limit, before=before
    )
    return NoteRevisions(found)


@operations.declare("POST", "/api/notes/restore", needs="write", errors=[NotFound, Conflict])
async def restore_notes(call: Call, agent_id: Name, body: NoteRestore, user: Name | None = None) -> Note:
    """Bring a former version of the notes back, as a new one."""
    return await call.engine.notes.restore(
        user=await call.authorization.user(user), agent=agent_id, revision=body.revision, version=body.version
    )
