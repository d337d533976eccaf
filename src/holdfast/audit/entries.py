"""Audit entries: what the audit records of one call or change."""

from typing import Any, Literal
from uuid import UUID

import msgspec

# `refused`: the engine did not let it happen. `failed`: it was tried. `unknown`: it may have happened.
AuditOutcome = Literal["done", "failed", "refused", "cancelled", "unknown"]


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call or a change: who did what, to what, with which outcome.

    `action` names it, such as `tool.call` or `keys.create`, and `target` its object. `user`, `actor`, `address`,
    `arguments` and `details` can be personal data, and are stored where they can be erased. `actor` is the user of the
    key, if the caller acted as another user. `arguments` are those that the policy of the audit lets it keep; of all
    others, only their hash is kept. `rule` is the rule or limit that refused it, and `notes` what rules on trial say.
    The request's entry point, id, trace and client are added where the entry is recorded.
    """

    action: str
    target: str = ""
    outcome: AuditOutcome = "done"
    user: str | None = None
    actor: str | None = None
    agent: str | None = None
    key: UUID | None = None
    arguments: Any = None
    code: str = ""  # of the error
    rule: str = ""
    notes: tuple[str, ...] = ()
    duration_ms: float | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    details: dict[str, Any] = {}
