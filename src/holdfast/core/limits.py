"""Limits of a process, and the share of them that a tenant, a user or an address can take; and quotas of all nodes."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from holdfast.core.settings import Count, Name, Number, Seconds, SettingsSection, Whole

Share = Annotated[Number, Field(gt=0, le=1)]


def _split_rules(value: object) -> object:
    # A limit may contain commas, by which other lists are separated.
    return [item for item in map(str.strip, value.split(";")) if item] if isinstance(value, str) else value


class LimitSettings(SettingsSection):
    """Limits of a process, and the share of them that a tenant, a user or an address can take."""

    requests: Count = Field(
        default=256,
        description="maximum number of running requests; applies separately to requests that are not authenticated yet",
    )
    waiting: Count = Field(default=2000, description="maximum number of requests that wait for an agent or a tool")
    streams: Count = Field(default=2000, description="maximum number of event streams (SSE) of MCP clients")
    sockets: Count = Field(default=2000, description="maximum number of open WebSockets")
    tool_calls: Count = Field(default=100, description="maximum number of tool calls that run in the process")
    searches: Whole = Field(
        default=0,
        ge=0,
        le=1000,
        description="maximum number of memory searches that run in the database; 0: one per core of this machine, "
        "at least 2; raise it if your own PostgreSQL has more cores",
    )
    connections: Count = Field(default=8000, description="maximum number of open TCP connections to the server")
    anonymous: Count = Field(default=64, description="maximum number of running anonymous requests")
    sign_ins: Count = Field(default=8, description="maximum number of running sign-ins (`POST /login`)")
    sign_ins_per_minute: Count = Field(default=30, description="maximum number of sign-ins per minute from one address")
    tenant_share: Share = Field(
        default=0.9,
        description="share of each limit that a single tenant can take; with several tenants, each gets less; 1: "
        "no limit per tenant",
    )
    user_share: Share = Field(
        default=0.9,
        description="share of the tenant's part that a single user can take; with several users, each gets less; "
        "1: no limit per user",
    )
    address_share: Share = Field(
        default=0.9,
        description="share that one address can take of the connections, of the anonymous requests and of the "
        "requests that are not authenticated yet; 1: no limit per address",
    )


class QuotaSettings(SettingsSection):
    """Rate limits and budgets for each tenant, shared by all nodes."""

    limits: Annotated[tuple[Name, ...], BeforeValidator(_split_rules)] = Field(
        default=(),
        description="limits for each tenant, such as `each user: 60 requests per minute`, separated by semicolons; "
        "see [quotas.md](quotas.md)",
    )
    warn_percent: Whole = Field(
        default=80,
        ge=1,
        le=100,
        description="share of a budget from which the engine warns, in percent, unless the limit sets its own",
    )
    lease: Annotated[Seconds, Field(ge=0.2)] = Field(
        default=10,
        description="seconds after which the slots for concurrent calls that a dead process held are free again",
    )
    keep_days: Count = Field(default=400, description="days to keep what model calls used, by day")
