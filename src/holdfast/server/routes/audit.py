"""The audit of the tenant: who called and changed what. The scope `admin` gives access to it."""

from typing import Annotated

import msgspec
from starlette.responses import Response

from holdfast.audit.audit import RecordedEntry, Verification
from holdfast.audit.chain import ChainProgress
from holdfast.audit.entries import AuditOutcome
from holdfast.core.errors import InvalidInput
from holdfast.server.attachments import json_lines
from holdfast.server.fields import Limit, Number, ZonedMoment, about
from holdfast.server.operations import JSON_LINES, ApiCall, ApiOperations

operations = ApiOperations("audit")

MAX_HEADS = 100_000
HASH = r"^[0-9a-f]{64}$"
VERIFY_SECONDS = 300.0  # for the largest part of a chain
EXPORT_SECONDS = 3600.0  # for a whole chain

Hash = Annotated[str, msgspec.Meta(pattern=HASH)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


class AuditPage(msgspec.Struct, frozen=True):
    """Entries, newest first. Pass `cursor` as `before` to get the next page; it is null on the last page."""

    entries: list[RecordedEntry]
    cursor: int | None


class AuditNews(msgspec.Struct, frozen=True):
    """Entries, oldest first. Pass `after` again to get those that follow."""

    entries: list[RecordedEntry]
    after: int


class ProgressGiven(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far the chain is verified, as the previous verification returned it."""

    seq: Number
    hash: Hash
    checkpoint: Annotated[str, msgspec.Meta(max_length=100)] = ""
    verified: Number = 0
    erased: Number = 0
    erasures: Number = 0
    unexplained: Number = 0
    attested: bool = False


class HeadGiven(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A published end of the chain: the number of its last entry then, and that entry's hash."""

    seq: Number
    hash: Hash


class VerifyRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the chain to verify: at most `limit` entries after `progress`, or from the beginning.

    `heads` are published ends of the chain. Those that are in this part are compared.
    """

    progress: ProgressGiven | None = None
    heads: Annotated[list[HeadGiven], msgspec.Meta(max_length=MAX_HEADS)] = []
    limit: Annotated[int, msgspec.Meta(ge=1, le=200_000)] = 50_000


class ErasureRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user whose personal data to erase from the audit."""

    user: Annotated[str, msgspec.Meta(min_length=1, max_length=255), about("User to erase.")]


class ErasedEntries(msgspec.Struct, frozen=True):
    """How many entries lost their personal data."""

    erased: int


@operations.declare("GET", "/api/audit", needs="admin")
async def list_audit(
    call: ApiCall,
    user: Annotated[Text | None, about("Only entries of this user.")] = None,
    action: Annotated[Text | None, about("Only this action, such as tool.call or create_key.")] = None,
    outcome: Annotated[AuditOutcome | None, about("Only entries with this outcome.")] = None,
    target: Annotated[Text | None, about("Only entries about this, such as a tool.")] = None,
    since: Annotated[ZonedMoment | None, about("Only entries from this time on.")] = None,
    limit: Limit = 50,
    before: Number | None = None,
) -> AuditPage:
    """List entries of the audit, newest first."""
    found = await call.engine.audit.list(
        user=user, action=action, outcome=outcome, target=target, since=since, limit=limit, before=before
    )
    return AuditPage(found, None if found.cursor is None else int(found.cursor))


@operations.declare("GET", "/api/audit/news", needs="admin")
async def follow_audit(
    call: ApiCall,
    after: Number | None = None,
    user: Text | None = None,
    action: Text | None = None,
    outcome: AuditOutcome | None = None,
    target: Text | None = None,
    since: ZonedMoment | None = None,
    limit: Limit = 200,
) -> AuditNews:
    """List entries of the audit after a number, oldest first. Without one, list none, and return the last number."""
    entries, last = await call.engine.audit.follow(
        after, user=user, action=action, outcome=outcome, target=target, since=since, limit=limit
    )
    return AuditNews([*entries], last)


# Not audited: it changes nothing, and a long chain is verified in many parts.
@operations.declare("POST", "/api/audit/verify", needs="admin", audit=False)
async def verify_audit(call: ApiCall, body: VerifyRequest) -> Verification:
    """Verify a part of the chain of the audit. Pass `progress` of the result on until it is `complete`."""
    call.slot.stay(VERIFY_SECONDS)
    heads: dict[int, bytes] = {}
    for head in body.heads:
        hash = bytes.fromhex(head.hash)
        if heads.setdefault(head.seq, hash) != hash:
            raise InvalidInput(
                f"the published heads contradict each other about the entry {head.seq}",
                why="two of them have different hashes",
                next="One of them was changed. Compare the places where they were published.",
            )
    progress = None if body.progress is None else ChainProgress(**msgspec.structs.asdict(body.progress))
    return await call.engine.audit.verify_some(progress, heads=heads, limit=body.limit)


@operations.declare("GET", "/api/audit/export", needs="admin", response_format=JSON_LINES, audit=True)
async def export_audit(call: ApiCall) -> Response:
    """Export the audit as JSON lines, with the hashes that prove it."""
    call.slot.stay(EXPORT_SECONDS)
    return json_lines(call.engine.audit.export())


@operations.declare("POST", "/api/audit/erase", needs="admin")
async def erase_audit(call: ApiCall, body: ErasureRequest) -> ErasedEntries:
    """Erase the personal data of all entries of a user. The chain still verifies."""
    return ErasedEntries(await call.engine.audit.erase(user=body.user, by=call.principal.user))
