"""Limits of a process, and the share of them that a tenant, a user or an address can take."""

from typing import Annotated

from pydantic import Field

from holdfast.core.settings import Count, Number, SettingsSection, Whole

Share = Annotated[Number, Field(gt=0, le=1)]


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
