"""Audit entries: what the audit records of one call or change, and how an entry is stored.

A stored entry has two parts. `EntryText` has no personal data, and is kept as long as the chain. `PersonText` has what
may be personal: it can be erased. The first has a hash of the second, made with a random salt, so that nobody can guess
the erased data from it.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import msgspec

from holdfast.core.errors import BudgetSpent, HoldfastError, RateLimited
from holdfast.core.ids import uuid7
from holdfast.core.request_context import Entry, RequestContext
from holdfast.core.text import dumps, render

# `refused`: the engine did not let it happen. `failed`: it was tried. `waiting`: it asked its client a question, and
# the client makes it again with the answer. `unknown`: it may have happened.
AuditOutcome = Literal["done", "failed", "refused", "waiting", "cancelled", "unknown"]

SALT_BYTES = 16
MAX_NAME = 255  # characters of a user's name; longer names are cut here and in searches
MAX_TARGET = 500  # characters; an index has it
MAX_NOTES = 20
MAX_NOTE = 500
MAX_KEPT_BYTES = 64_000  # of arguments and details

# Errors with which the engine refuses a request, and does nothing.
REFUSALS = frozenset({
    "invalid_input", "not_found", "unauthenticated", "forbidden", "conflict", "already_exists", "busy", "too_large",
    "overloaded", "limit_reached", "rate_limited", "budget_spent",
})  # fmt: skip


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call or a change: who did what, to what, with which outcome.

    `action` names it: `tool.call`, `resource.read`, `prompt.get`, or the id of an operation of the HTTP API such as
    `create_key`. `target` is its object. `user`, `actor`, `address`, `arguments` and `details` can be personal data,
    and are stored where they can be erased. `actor` is the user of the key, if the caller acted as another user.
    `arguments` are those that the policy of the audit lets it keep, and `arguments_json` all of them as JSON, of which
    only a salted hash is kept. `rule` is the rule or limit that refused it, and `notes` what rules on trial say.
    `count` is of how many objects. The request's entry point, id, trace and client are added where it is recorded.
    """

    action: str
    target: str = ""
    outcome: AuditOutcome = "done"
    user: str | None = None
    actor: str | None = None
    agent: str | None = None
    key: UUID | None = None
    arguments: Any = None
    arguments_json: bytes = b""
    code: str = ""  # of the error
    rule: str = ""
    notes: tuple[str, ...] = ()
    count: int | None = None
    duration_ms: float | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    details: dict[str, Any] = {}


class EntryText(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of an entry without personal data, as it is stored. `person` is the salted hash of the other part."""

    action: str
    target: str
    outcome: AuditOutcome
    via: Entry = "engine"
    agent: str | None = None
    key: UUID | None = None
    code: str = ""
    rule: str = ""
    notes: tuple[str, ...] = ()
    count: int | None = None
    duration_ms: float | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    request_id: str = ""
    trace_id: str = ""
    person: str = ""


class PersonText(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of an entry that may be personal data, as it is stored. `rule` is here if it names the user."""

    user: str | None = None
    actor: str | None = None
    address: str = ""
    arguments_hash: str = ""
    arguments: Any = None
    details: dict[str, Any] = {}
    rule: str = ""


NOBODY = PersonText()


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An entry as it is stored, with both parts as JSON."""

    id: UUID
    entry: str
    person: str | None
    salt: bytes | None

    @property
    def size(self) -> int:
        """Its size in characters."""
        return len(self.entry) + len(self.person or "")


def row_of(entry: AuditEntry, request: RequestContext) -> AuditRow:
    """Return the row of an entry. `request` is the request to which it belongs."""
    salt = os.urandom(SALT_BYTES)
    rule = entry.rule[:MAX_NOTE]
    is_personal = bool(entry.user) and entry.user in rule  # a limit of one user has the user in its name
    personal = PersonText(
        user=_cut(entry.user, MAX_NAME),
        actor=_cut(entry.actor, MAX_NAME),
        address=request.address,
        arguments_hash=hashlib.sha256(salt + entry.arguments_json).hexdigest() if entry.arguments_json else "",
        arguments=entry.arguments,
        details=entry.details,
        rule=rule if is_personal else "",
    )
    person = None if personal == NOBODY else _person_json(personal)
    text = EntryText(
        action=entry.action,
        target=entry.target[:MAX_TARGET],
        outcome=entry.outcome,
        via=request.entry,
        agent=entry.agent,
        key=entry.key,
        code=entry.code,
        rule="" if is_personal else rule,
        notes=tuple(note[:MAX_NOTE] for note in entry.notes[:MAX_NOTES]) if entry.notes else (),
        count=entry.count,
        duration_ms=None if entry.duration_ms is None else round(entry.duration_ms, 3),
        bytes_in=entry.bytes_in,
        bytes_out=entry.bytes_out,
        request_id=request.request_id[:MAX_NOTE],
        trace_id=request.trace_id,
        person="" if person is None else person_hash(salt, person),
    )
    return AuditRow(uuid7(), dumps(text), person, None if person is None else salt)


def person_hash(salt: bytes, person: str) -> str:
    """Return the salted hash of the personal part of an entry."""
    return hashlib.sha256(salt + person.encode()).hexdigest()


def json_of(arguments: Mapping[str, Any]) -> bytes:
    """Return arguments as JSON: the same bytes for the same arguments, in whatever order they were sent."""
    try:
        return msgspec.json.encode(arguments, order="sorted")
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError):
        return render(repr(arguments))  # a lone surrogate, or a value of an agent's turn that is not JSON


def outcome_of_error(error: BaseException) -> tuple[AuditOutcome, str]:
    """Return the outcome and the code of a call or a request that raised an error."""
    if not isinstance(error, HoldfastError):
        return "failed", "failed"
    return ("refused" if error.code in REFUSALS else "failed"), error.code


def rule_of(error: BaseException) -> str:
    """Return the name of the rule or limit that raised an error; an empty text for other errors."""
    match error:
        case RateLimited() | BudgetSpent():
            return str(error.details["limit"])
        case HoldfastError():
            return str(error.details.get("rule", ""))
        case _:
            return ""


def _person_json(personal: PersonText) -> str:
    """Encode the personal part. What is too large, or cannot be stored, is left out and named."""
    try:
        encoded = dumps(personal)
        if len(encoded) <= MAX_KEPT_BYTES:
            return encoded
        why = "too large"
    except HoldfastError:
        why = "cannot be stored"
    left_out = {"left_out": f"arguments and details: {why}"}
    return dumps(msgspec.structs.replace(personal, arguments=None, details=left_out))


def _cut(name: str | None, most: int) -> str | None:
    return name if name is None else name[:most]
