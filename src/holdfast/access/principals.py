"""A principal: who a request comes from, in which tenant, with which scopes."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from holdfast.core.errors import Forbidden, InvalidInput
from holdfast.core.ids import TenantId
from holdfast.postgres.database import Statements
from holdfast.postgres.sql import statements

Scope = Literal["read", "write", "admin", "act-as", "operator"]
SCOPES: frozenset[str] = frozenset(get_args(Scope))
OWNER_SCOPES: frozenset[str] = frozenset({"read", "write", "admin"})
LOCAL_USER = "local"  # who is on the server's own machine
USER_SCOPES: frozenset[str] = frozenset({"read", "write"})

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks.

    Scopes: `read` and `write` what is one's own, `admin` every user's and the keys, `act-as` any user, `operator` every
    tenant. `agent`: they speak for this agent, and may call the tools that it may. `local`: they came without a key,
    from the server's own machine. `vouched`: a key with `act-as` names this user.
    """

    tenant: TenantId
    user: str
    scopes: frozenset[str]
    agent: str | None = None
    local: bool = False
    vouched: bool = False

    @property
    def adopts(self) -> bool:
        """Whether a conversation that is nobody's becomes theirs when they continue it."""
        return self.vouched or "admin" in self.scopes

    def require(self, scope: Scope) -> None:
        """Refuse a caller who lacks a scope."""
        if scope not in self.scopes:
            raise Forbidden(
                f"this needs the scope {scope!r}",
                why=f"the caller {self.user!r} has {', '.join(sorted(self.scopes)) or 'none'}",
                next="use a key that has it: `holdfast keys create --scope` makes one",
                scope=scope,
            )

    def require_person(self) -> None:
        """Refuse a caller who speaks for an agent: what a person has to decide is not for agents."""
        if self.agent is not None:
            raise Forbidden(
                "a person has to decide this",
                why=f"the caller speaks for the agent {self.agent!r:.200}",
                next="use a key that is not an agent's",
            )

    def acting_as(self, user: str) -> "Principal":
        """The same caller speaking for one of the tenant's users, and held to what a user may."""
        self.require("act-as")
        return replace(self, user=user, scopes=self.scopes & USER_SCOPES, vouched=True)

    def in_tenant(self, tenant: TenantId) -> "Principal":
        """The same caller in another tenant."""
        self.require("operator")
        return replace(self, tenant=tenant)


async def ensure_principal(database: Statements, name: str, *, owner: bool = False) -> None:
    """Record that someone of this name may act in the tenant."""
    await database.run(sql("ensure_principal"), name, "owner" if owner else "member")


def check_scopes(scopes: frozenset[str]) -> None:
    """Refuse scopes that do not exist."""
    unknown = sorted(scopes - SCOPES)
    if unknown or not scopes:
        raise InvalidInput(
            f"there is no scope {', '.join(map(repr, unknown))}" if unknown else "a key without a scope can do nothing",
            next=f"the scopes are {', '.join(sorted(SCOPES))}",
        )
