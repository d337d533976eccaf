"""Principals: who makes a request, in which tenant, with which scopes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args
from uuid import UUID

from holdfast.core.errors import Forbidden, InvalidInput
from holdfast.core.ids import TenantId
from holdfast.postgres.database import Statements
from holdfast.postgres.sql import statements

Scope = Literal["read", "write", "admin", "act-as", "operator"]
SCOPES: frozenset[str] = frozenset(get_args(Scope))
OWNER_SCOPES: frozenset[str] = frozenset({"read", "write", "admin"})
LOCAL_USER = "local"  # a caller on the server's own machine
USER_SCOPES: frozenset[str] = frozenset({"read", "write"})
INCLUDED: Mapping[str, frozenset[str]] = {"admin": frozenset({"read", "write"}), "write": frozenset({"read"})}

sql = statements(__name__)


class MissingScope(Forbidden):
    """The caller lacks scopes that it could have. `details["scope"]` names all that are required."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who makes a request.

    Scopes: `read` and `write` give access to the user's own data, `admin` to the data of all users and the keys,
    `act-as` to act as any user, `operator` to all tenants. `agent`: the caller speaks for this agent, and may call the
    tools that the agent may call. `local`: the caller has no key and is on the server's own machine. `vouched`: a
    caller with `act-as` named this user.

    These do not decide what the caller may do: `key` is the id of the API key or the browser session. `actor` is the
    user of the key, if the caller acts as another user. `token` is the token of an issuer that the caller sent: it can
    be exchanged for a token for a back end. `grantable` are the scopes that its issuer may grant to this user.
    """

    tenant: TenantId
    user: str
    scopes: frozenset[str]
    agent: str | None = None
    local: bool = False
    vouched: bool = False
    key: UUID | None = field(default=None, compare=False)
    actor: str | None = field(default=None, compare=False)
    token: str | None = field(default=None, compare=False, repr=False)
    grantable: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def adopts(self) -> bool:
        """Whether a conversation without a user becomes the caller's when the caller continues it."""
        return self.vouched or "admin" in self.scopes

    def require(self, *scopes: str) -> None:
        """Raise MissingScope if the caller lacks any of these scopes. It names all of them: one sign-in is enough.

        Raises another Forbidden if this caller can never have them: it acts for another user or for an agent, or the
        issuer of its token may not grant them.
        """
        if self.scopes.issuperset(scopes):
            return
        is_attainable = not self.vouched and (self.agent is None or USER_SCOPES.issuperset(scopes))
        if self.token is not None:
            is_attainable &= self.grantable.issuperset(scopes)
        named, many = " and ".join(map(repr, scopes)), len(scopes) > 1
        raise (MissingScope if is_attainable else Forbidden)(
            f"the scopes {named} are required" if many else f"the scope {named} is required",
            why=f"the caller {self.user!r} has the scopes {', '.join(sorted(self.scopes)) or '(none)'}",
            next=f"Use a key with {'these scopes' if many else 'this scope'}; create one with "
            "`holdfast keys create --scope`.",
            scope=" ".join(scopes),
        )

    def require_person(self) -> None:
        """Raise Forbidden if the caller speaks for an agent: a person has to decide this."""
        if self.agent is not None:
            raise Forbidden(
                "only a person can decide this",
                why=f"the caller acts for the agent {self.agent!r:.200}",
                next="Use a key that belongs to no agent.",
            )

    def acting_as(self, user: str) -> "Principal":
        """Return the caller acting as one of the tenant's users, with a user's scopes at most."""
        self.require("act-as")
        scopes = self.scopes & USER_SCOPES
        return replace(self, user=user, scopes=scopes, vouched=True, actor=self.user, token=None, grantable=frozenset())

    def in_tenant(self, tenant: TenantId) -> "Principal":
        """Return the same caller in another tenant."""
        self.require("operator")
        return replace(self, tenant=tenant)


def with_included(scopes: Iterable[str]) -> frozenset[str]:
    """Return scopes with those that they include: `admin` includes `write`, and `write` includes `read`."""
    named = frozenset(scopes)
    return named.union(*(INCLUDED[scope] for scope in named if scope in INCLUDED))


async def ensure_principal(database: Statements, name: str, *, owner: bool = False) -> None:
    """Record that a principal of this name may act in the tenant."""
    await database.run(sql("ensure_principal"), name, "owner" if owner else "member")


def check_scopes(scopes: frozenset[str]) -> None:
    """Raise InvalidInput if a scope does not exist, or if there is none."""
    unknown = sorted(scopes - SCOPES)
    if unknown or not scopes:
        raise InvalidInput(
            f"unknown scope {', '.join(map(repr, unknown))}" if unknown else "a key needs at least one scope",
            next=f"Use one or more of {', '.join(sorted(SCOPES))}.",
        )
