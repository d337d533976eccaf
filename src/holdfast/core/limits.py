"""Limits: how much one process does at once, and how much of it one holder may take."""

from typing import Annotated

from pydantic import Field

from holdfast.core.settings import Count, Number, Section, Whole

Share = Annotated[Number, Field(gt=0, le=1)]


class LimitSettings(Section):
    """How much one process does at once, and how much of it one tenant, one user or one address may take."""

    requests: Count = Field(default=256, description="requests of known callers that run at once")
    waiting: Count = Field(default=2000, description="requests that wait for an agent or a tool")
    streams: Count = Field(default=2000, description="streams of server-sent events over which MCP clients listen")
    sockets: Count = Field(default=2000, description="open WebSockets")
    tool_calls: Count = Field(default=100, description="calls of tools that run in the process at once")
    searches: Whole = Field(
        default=0,
        ge=0,
        le=1000,
        description="searches of memories that run in the database at once; 0: one per core of this machine, so raise "
        "it where your own PostgreSQL has more cores",
    )
    connections: Count = Field(default=8000, description="open TCP connections to the server")
    anonymous: Count = Field(default=64, description="requests of unknown callers that run at once")
    sign_ins: Count = Field(default=8, description="sign-ins (`POST /login`) that run at once")
    sign_ins_per_minute: Count = Field(default=30, description="sign-ins a minute from one address")
    tenant_share: Share = Field(
        default=0.9, description="part of each limit that a tenant may take which is alone; with others it gets less"
    )
    user_share: Share = Field(
        default=0.9, description="part of their tenant's places that a user may take who is alone in it"
    )
    address_share: Share = Field(
        default=0.9, description="part of the connections and of what is anonymous that one address may take"
    )
