"""Agents: every caller can list the active ones; their definitions need the scope `admin`."""

from typing import Literal

import msgspec
from msgspec.structs import asdict

from holdfast.agents import Definition, Limits
from holdfast.agents.agents import choose_agent
from holdfast.core.errors import AlreadyExists, Conflict, NotFound
from holdfast.server.fields import AgentName, RegistryVersion, ShortName
from holdfast.server.operations import ApiCall, ApiOperations

operations = ApiOperations("agents")


class AgentChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent to store. To change an agent, send its current `version`; for a new one, send null.

    `tools`: names of tools that the serving program knows. A null limit defaults to the settings. `knowledge`: whether
    it finds and reads documents, or in which collections.
    """

    instructions: str
    description: str = ""
    model: ShortName | None = None
    tools: list[ShortName] = []
    memory: bool = True
    approve: list[ShortName] = []
    limits: Limits = Limits()
    knowledge: bool | list[ShortName] = False
    active: bool = True
    version: RegistryVersion | None = None


class AgentEntry(msgspec.Struct, frozen=True):
    """An agent. `served`: a process serves it now."""

    name: str
    kind: Literal["llm", "system", "ui"]
    description: str
    active: bool
    served: bool


class AgentList(msgspec.Struct, frozen=True):
    """Agents, by name. Only an admin gets inactive ones.

    `chosen`: the agent that answers a message that names none. It is null if no agent is served, or if several are
    served and none is called `default`.
    """

    agents: list[AgentEntry]
    chosen: str | None


@operations.declare("GET", "/api/agents", needs="read")
async def list_agents(call: ApiCall) -> AgentList:
    """List agents."""
    found = await call.engine.definitions.list()
    served = await call.engine.agents.served()
    everyone = call.authorization.is_admin
    listed = [
        AgentEntry(one.name, one.kind, one.description, one.active, one.name in served)
        for one in found
        if everyone or one.active
    ]
    return AgentList(listed, choose_agent([one.name for one in listed if one.served and one.kind != "ui"]))


@operations.declare("GET", "/api/agents/{name}", needs="admin", errors=[NotFound])
async def get_agent(call: ApiCall, name: str) -> Definition:
    """Get an agent with its instructions, tools and limits."""
    return await call.engine.definitions.get(name)


@operations.declare("PUT", "/api/agents/{name}", needs="admin", errors=[AlreadyExists, Conflict])
async def put_agent(call: ApiCall, name: AgentName, body: AgentChange) -> Definition:
    """Create or change a stored agent. An agent declared in an app can only be changed there."""
    return await call.engine.definitions.put(name, **asdict(body), by=call.principal.user)


@operations.declare("DELETE", "/api/agents/{name}", needs="admin", status=204, errors=[NotFound, AlreadyExists])
async def remove_agent(call: ApiCall, name: str) -> None:
    """Remove a stored agent. Its conversations and runs are kept."""
    await call.engine.definitions.remove(name, by=call.principal.user)
