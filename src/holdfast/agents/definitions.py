"""Definitions of agents, declared in an app or stored as rows."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast
from uuid import UUID

import msgspec

from holdfast.access.identities import Identities
from holdfast.bus.log import Log
from holdfast.core.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from holdfast.core.text import restore, store
from holdfast.llm.providers import is_provided
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements
from holdfast.skills.tool import GRANTED, Tool

if TYPE_CHECKING:
    from holdfast.agents.agents import Agents
    from holdfast.agents.operator_limits import OperatorLimits

AgentKind = Literal["llm", "system", "ui"]
DEFAULT_AGENT = "default"
RESERVED = frozenset({"ui", "tool", "user", "system", "assistant"})  # other authors in a conversation
MAX_INSTRUCTIONS = 200_000  # characters

NAME = r"[A-Za-z0-9_-]{1,100}"
_NAME = re.compile(NAME)

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message to an agent whose handler is a function: what was said, by whom and where."""

    text: str
    user: str | None
    session_id: str | None
    conversation_id: UUID
    node_id: UUID
    run_id: UUID


AgentFunction = Callable[[Incoming], Awaitable[str | None]]
Channel = Callable[["Agents", str], Awaitable[None]]
Stamp = tuple[int, datetime]


ABOVE_ZERO = msgspec.Meta(gt=0)
COUNT = msgspec.Meta(gt=0, le=2**63 - 1)


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of one run of an agent. The defaults are in the settings."""

    steps: Annotated[int, COUNT] | None = None
    tokens: Annotated[int, COUNT] | None = None
    seconds: Annotated[float, ABOVE_ZERO] | None = None
    cost: Annotated[float, ABOVE_ZERO] | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent: `llm` uses a model and tools, `system` is a function of an app.

    `ui` is a channel of an app: others talk through it, and nobody talks to it. `knowledge`: it reads documents of all
    collections, of these, or none.
    """

    name: str
    kind: AgentKind = "llm"
    description: str = ""
    instructions: str = ""
    model: str | None = None
    tools: tuple[Tool, ...] = ()
    named: tuple[str, ...] = ()  # names of registered tools
    skills: tuple[str, ...] = ()
    memory: bool = True
    approve: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=Limits)
    knowledge: bool | tuple[str, ...] = False
    handler: AgentFunction | None = None
    channel: Channel | None = None

    def __post_init__(self) -> None:
        error = _declaration_error(self)
        if error:
            raise InvalidInput(f"the agent {self.name!r:.200} cannot be declared", why=error)

    @property
    def collections(self) -> tuple[str, ...] | None:
        """The collections whose documents it reads; None means all."""
        return collections_of(self.knowledge)

    @property
    def topic(self) -> str:
        """The topic on which the agent receives messages."""
        return f"{self.kind}-{self.name}"

    @property
    def group(self) -> str:
        """The consumer group with which the agent reads its topic."""
        return f"agent-{self.name}"


@dataclass(frozen=True, slots=True)
class Definition:
    """An agent as it is stored. `tools` are names of tools that an app declares or that are registered."""

    id: UUID
    name: str
    kind: AgentKind
    description: str
    instructions: str
    model: str | None
    tools: tuple[str, ...]
    memory: bool
    approve: tuple[str, ...]
    limits: Limits
    knowledge: bool | tuple[str, ...]
    origin: Literal["code", "db"]
    active: bool
    version: int
    updated_by: str
    updated_at: datetime


class Definitions:
    """Stores and finds the agents of one tenant."""

    def __init__(self, database: Database, *, identities: Identities, log: Log, ceilings: "OperatorLimits") -> None:
        self.ceilings = ceilings
        self._database = database
        self._identities = identities
        self._log = log

    async def declare(self, agents: Iterable[Agent]) -> None:
        """Store the agents of an app, each with its topic. Rows with the same names become the app's."""
        for agent in agents:
            await self._log.create(agent.topic)
            id = await self._identities.id("agent", agent.name)
            await self._database.value(
                sql("declare_agent"), id, agent.name, agent.kind, store(agent.description), store(agent.instructions),
                agent.model, _settings(agent),
            )  # fmt: skip

    async def put(
        self,
        name: str,
        *,
        instructions: str,
        description: str = "",
        model: str | None = None,
        tools: Sequence[str] = (),
        memory: bool = True,
        approve: Sequence[str] = (),
        limits: Limits | None = None,
        knowledge: bool | Sequence[str] = False,
        active: bool = True,
        version: int | None = None,
        by: str = "",
    ) -> Definition:
        """Create or change an agent. `version` is the version to change, or None for a new agent.

        The agent has to respect the limits of the settings and the models that they allow.
        """
        _check_names(name, model, tools)
        agent = Agent(
            name,
            description=description,
            instructions=instructions,
            model=model,
            memory=memory,
            approve=frozenset(approve),
            limits=limits or Limits(),
            knowledge=knowledge if isinstance(knowledge, bool) else tuple(knowledge),
        )
        self.ceilings.check(name, agent.limits, model)
        settings = {**_settings(agent), "tools": list(tools)}
        if version is not None and await self._database.one(sql("agent"), name) is None:
            raise Conflict(
                f"the agent {name} cannot be changed",
                expected=version,
                current=0,
                why="there is none of this name",
                next="Omit the version to create it.",
            )
        await self._log.create(agent.topic)
        id = await self._identities.id("agent", name)
        row = cast(Row, await self._database.one(
            sql("put_agent"), id, name, store(description), store(instructions), model, settings, active, version,
            store(by),
        ))  # fmt: skip
        match row["outcome"]:
            case "code":
                raise AlreadyExists(f"the agent {name} is declared in an app", next="Change it there.")
            case "conflict" if version is None:
                raise AlreadyExists(
                    f"there is an agent {name} already", next=f"Give its version, {row['version']}, to change it."
                )
            case "conflict":
                raise Conflict(f"the agent {name} has changed", expected=version or 0, current=row["version"])
            case _:
                return await self.get(name)

    async def remove(self, name: str, *, by: str = "") -> None:
        """Remove an agent. Its conversations, its topic and its runs stay."""
        outcome = await self._database.value(sql("remove_agent"), name, store(by))
        if outcome == "code":
            raise AlreadyExists(f"the agent {name} is declared in an app", next="Remove it there.")
        if outcome == "missing":
            raise unknown_agent(name)

    async def get(self, name: str) -> Definition:
        """Return an agent."""
        row = await self._database.one(sql("agent"), store(name))
        if row is None:
            raise unknown_agent(name)
        return definition_of(row)

    async def stored(self) -> dict[str, Stamp]:
        """Return the active agents that no app declares, each with a stamp that changes with every edit."""
        rows = await self._database.all(sql("stored_agents"))
        return {row["name"]: (row["aggregate_version"], row["update_ts"]) for row in rows}

    async def unknown_tools(self, names: Sequence[str]) -> list[str]:
        """Return the names that no registered tool has."""
        asked = [name for name in names if name not in GRANTED]
        return [row["name"] for row in await self._database.all(sql("unknown_tools"), asked)] if asked else []

    async def list(self) -> list[Definition]:
        """List all agents by name."""
        return [definition_of(row) for row in await self._database.all(sql("agents"))]


def agent_of(definition: Definition, tools: Mapping[str, Tool]) -> Agent:
    """Build an agent from its definition. Tools that this app declares are called in this process."""
    names = dict.fromkeys(definition.tools)
    return Agent(
        definition.name,
        description=definition.description,
        instructions=definition.instructions,
        model=definition.model,
        tools=tuple(tools[name] for name in names if name in tools),
        named=tuple(name for name in names if name not in tools),
        memory=definition.memory,
        approve=frozenset(definition.approve),
        limits=definition.limits,
        knowledge=definition.knowledge,
    )


def definition_of(row: Row) -> Definition:
    """Build a definition from its row."""
    settings = row["settings"]
    knowledge = settings.get("knowledge", False)
    return Definition(
        row["agent_def_id"],
        row["name"],
        row["kind"],
        restore(row["description"]),
        restore(row["instructions"]),
        row["model"],
        tuple(settings.get("tools", ())),
        settings.get("memory", True),
        tuple(settings.get("approve", ())),
        Limits(**settings.get("limits", {})),
        knowledge if isinstance(knowledge, bool) else tuple(knowledge),
        row["origin"],
        row["active"],
        row["aggregate_version"],
        restore(row["update_user"]),
        row["update_ts"],
    )


def collections_of(knowledge: bool | Sequence[str]) -> tuple[str, ...] | None:
    """Return the collections that an agent with this `knowledge` reads; None means all."""
    if isinstance(knowledge, bool):
        return None if knowledge else ()
    return tuple(knowledge)


def unknown_agent(name: str) -> NotFound:
    """Return the error for an agent that does not exist."""
    return NotFound(f"there is no agent {name!r:.200}", next="`holdfast agents ls` and `GET /api/agents` list them.")


def _check_names(agent: str, model: str | None, tools: Sequence[str]) -> None:
    duplicate = next((tool for tool in tools if list(tools).count(tool) > 1), None)
    if duplicate is not None:
        raise InvalidInput(
            f"the agent {agent!r:.200} cannot be stored", why=f"it names the tool {duplicate!r:.100} twice"
        )
    if model is not None and not is_provided(model):  # a script is a file: only apps and settings may name one
        raise InvalidInput(
            f"the agent {agent!r:.200} cannot be stored",
            why=f"unknown model {model!r:.100}",
            next="Name one as openai:NAME, openrouter:NAME, anthropic:NAME, ollama:NAME, or offline.",
        )


def _settings(agent: Agent) -> dict[str, Any]:
    limits = {
        name: limit
        for name in ("steps", "tokens", "seconds", "cost")
        if (limit := getattr(agent.limits, name)) is not None
    }
    return {
        "tools": [*(tool.name for tool in agent.tools), *agent.named],
        "memory": agent.memory,
        "approve": sorted(agent.approve),
        "limits": limits,
        **({"knowledge": agent.knowledge} if agent.knowledge is not False else {}),
    }


def _declaration_error(agent: Agent) -> str:
    """Return why an agent cannot be declared, or an empty text."""
    if not isinstance(agent.name, str) or not _NAME.fullmatch(agent.name):  # pyright: ignore[reportUnnecessaryIsInstance]
        return "its name is not made of 1 to 100 letters, digits, hyphens and underscores"
    if agent.name in RESERVED:
        return f"{agent.name} is the name of somebody else who speaks in conversations"
    if (agent.kind == "system") != (agent.handler is not None) or (agent.kind == "ui") != (agent.channel is not None):
        return "agents of the kinds system and ui are functions, and no others are"
    if not isinstance(agent.instructions, str) or len(agent.instructions) > MAX_INSTRUCTIONS:  # pyright: ignore[reportUnnecessaryIsInstance]
        return f"its instructions are not text of at most {MAX_INSTRUCTIONS} characters"
    names = [*(tool.name for tool in agent.tools), *agent.named]
    duplicates = {name for name in names if names.count(name) > 1}
    if duplicates:
        return f"it has two tools called {min(duplicates)}"
    for name, limit in (("steps", agent.limits.steps), ("tokens", agent.limits.tokens),
                        ("seconds", agent.limits.seconds), ("cost", agent.limits.cost)):  # fmt: skip
        if limit is not None and not (isinstance(limit, int | float) and limit > 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            return f"its limit of {name} is not above zero"
    if not isinstance(agent.knowledge, bool) and not all(isinstance(name, str) and name for name in agent.knowledge):  # pyright: ignore[reportUnnecessaryIsInstance]
        return "knowledge is neither true, nor false, nor names of collections"
    return ""
