"""Agents: who there is to talk to; what they are told and may do is for who administers the tenant."""

from typing import Annotated, Literal

import msgspec

from holdfast.agents import Definition, Limits
from holdfast.agents.agents import likeliest
from holdfast.core.errors import AlreadyExists, Conflict, NotFound
from holdfast.server.fields import AgentName
from holdfast.server.operations import Call, Operations

operations = Operations("agents")

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Version = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


class AgentChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent to store. `version` is the one that is changed, null where there is none yet.

    `tools` are names of those that the program which serves the agent knows; null limits are those of the settings.
    """

    instructions: str
    description: str = ""
    model: Name | None = None
    tools: list[Name] = []
    memory: bool = True
    approve: list[Name] = []
    limits: Limits = Limits()
    active: bool = True
    version: Version | None = None


class AgentEntry(msgspec.Struct, frozen=True):
    """An agent that can be talked to; `served`: a process answers for it now."""

    name: str
    kind: Literal["llm", "system", "ui"]
    description: str
    active: bool
    served: bool


class AgentList(msgspec.Struct, frozen=True):
    """Agents, by name; to others than admins, those that are active.

    `chosen`: the one that answers where none is named; null where several are served, or none is.
    """

    agents: list[AgentEntry]
    chosen: str | None


@operations.declare("GET", "/api/agents", needs="read")
async def list_agents(call: Call) -> AgentList:
    """Who there is to talk to."""
    found = await call.engine.definitions.list()
    served = await call.engine.agents.served()
    everyone = call.authorization.is_admin
    listed = [
        AgentEntry(one.name, one.kind, one.description, one.active, one.name in served)
        for one in found
        if everyone or one.active
    ]
    return AgentList(listed, likeliest([one.name for one in listed if one.served and one.kind != "ui"]))


@operations.declare("GET", "/api/agents/{name}", needs="admin", errors=[NotFound])
async def get_agent(call: Call, name: str) -> Definition:
    """An agent, with all that it is told and may do."""
    return await call.engine.definitions.get(name)


@operations.declare("PUT", "/api/agents/{name}", needs="admin", errors=[AlreadyExists, Conflict])
async def put_agent(call: Call, name: AgentName, body: AgentChange) -> Definition:
    """Store an agent, or change one; those that a program declares are changed there."""
    return await call.engine.definitions.put(
        name,
        instructions=body.instructions,
        description=body.description,
        model=body.model,
        tools=body.tools,
        memory=body.memory,
        approve=body.approve,
        limits=body.limits,
        active=body.active,
        version=body.version,
        by=call.principal.user,
    )


@operations.declare("DELETE", "/api/agents/{name}", needs="admin", status=204, errors=[NotFound, AlreadyExists])
async def remove_agent(call: Call, name: str) -> None:
    """Remove an agent; its conversations and its runs stay."""
    await call.engine.definitions.remove(name, by=call.principal.user)
