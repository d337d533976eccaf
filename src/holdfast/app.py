"""`App`: what a program declares for the engine to run.

    app = holdfast.App()

    @app.skill("translate")
    async def translate(text: str) -> str: ...

    @app.tool
    async def track(parcel: str) -> dict: ...

    support = app.agent("support", instructions="You help customers of a shop.", tools=[track])

    @app.service("shop.example/market/createOrder/1.0")
    async def create_order(parcel: str, amount: int) -> dict: ...

    @app.resource("shop://orders/{order}")
    async def order(order: str) -> str: ...

    @app.prompt
    def complaint(order: str) -> str: ...

`holdfast up shop:app` serves the agents of `app` in `shop.py`, `holdfast worker shop:app` runs its skills.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, overload
from weakref import WeakSet

from holdfast.agents.definitions import Agent, Channel, Handler, Limits
from holdfast.bus.skills import ATTEMPTS, Skill
from holdfast.core.errors import AlreadyExists, InvalidInput
from holdfast.skills.completers import Completing
from holdfast.skills.folders import FolderSkill, load_folders
from holdfast.skills.function import tool_of
from holdfast.skills.prompt import Prompt, prompt_of
from holdfast.skills.resource import OWN_SCHEME, Resource, resource_of
from holdfast.skills.service import service_of
from holdfast.skills.skill import Declared, File
from holdfast.skills.tool import RESERVED, Access, Mode, Tool

Function = TypeVar("Function", bound=Callable[..., Any])


class Teller(Protocol):
    """Whoever runs what an app declares, as far as the app has to know them."""

    def updated(self, uri: str) -> None:
        """Tell those who follow a resource that it has changed."""
        ...


class App:
    """Collects what is declared by its decorators."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._skills: dict[str, Skill] = {}
        self._expertise: dict[str, Declared] = {}
        self._tools: dict[str, Tool] = {}
        self._agents: dict[str, Agent] = {}
        self._resources: dict[str, Resource] = {}
        self._prompts: dict[str, Prompt] = {}
        self._tellers: WeakSet[Teller] = WeakSet()

    @property
    def skills(self) -> Mapping[str, Skill]:
        """The skills by name."""
        return MappingProxyType(self._skills)

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name."""
        return MappingProxyType(self._tools)

    @property
    def agents(self) -> Mapping[str, Agent]:
        """The agents by name, channels among them."""
        return MappingProxyType(self._agents)

    @property
    def resources(self) -> Mapping[str, Resource]:
        """The resources by address, or by the template of their addresses."""
        return MappingProxyType(self._resources)

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """The prompts by name."""
        return MappingProxyType(self._prompts)

    @property
    def expertise(self) -> Mapping[str, Declared]:
        """The skills that agents read, by name: `add_skill` and `add_skills` bring them."""
        return MappingProxyType(self._expertise)

    @property
    def brought(self) -> Mapping[str, Tool]:
        """Everything of the app that can be called as a tool, by name: also what its agents and workers have."""
        tools = dict(self._tools)
        for tool in (tool for agent in self._agents.values() for tool in agent.tools):
            _bring(tool, tools)
        for name, skill in self._skills.items():
            if name not in tools and (tool := _tool_of_skill(skill)) is not None:
                tools[name] = tool
        return tools

    def skill(
        self, name: str, *, rate: float | None = None, attempts: int = ATTEMPTS, timeout: float | None = None
    ) -> Callable[[Function], Function]:
        """Declare a function as a skill: async ones run on the event loop, plain ones each in a thread.

        `rate`: how many may start in a second, over all workers. `attempts`: how often it is tried, where the invoker
        does not say. `timeout`: seconds that an attempt may take. Arguments come by name; the result must be JSON.
        An attempt may be repeated after a crash: `current_command().correlation_id` stays the same.
        """
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"{name!r:.200} is no name of a skill", next='Write @app.skill("name").')

        def declare(function: Function) -> Function:
            if name in self._skills:
                raise AlreadyExists(f"the skill {name} is declared twice", next="Give each a name of its own.")
            self._skills[name] = Skill(name, function, rate, attempts, timeout)
            return function

        return declare

    @overload
    def tool(self, function: Function, /) -> Function: ...

    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        idempotent: bool = False,
        timeout: float | None = None,
        approve: bool = False,
        access: Access = "execute",
        mode: Mode = "inline",
        schema: Mapping[str, Any] | None = None,
    ) -> Callable[[Function], Function]: ...

    def tool(
        self,
        function: Function | None = None,
        /,
        *,
        name: str | None = None,
        idempotent: bool = False,
        timeout: float | None = None,
        approve: bool = False,
        access: Access = "execute",
        mode: Mode = "inline",
        schema: Mapping[str, Any] | None = None,
    ) -> Function | Callable[[Function], Function]:
        """Declare a function as a tool: its name, description and JSON Schema come from signature and docstring.

        Async ones run on the event loop, plain ones each in a thread. A parameter annotated `Run` is the engine's to
        give. `idempotent`: after a crash a call may be made again, else a person is asked. `timeout`: seconds that a
        call may take. `approve`: a person has to allow each call. `access`: what an agent must be allowed to do to call
        it: read, write or execute. `mode`: `event` has it run by workers (`holdfast worker APP`), not here. `schema`:
        the JSON Schema of its arguments, where the signature does not tell it, as of a service.
        """

        def declare(function: Function) -> Function:
            tool = tool_of(
                function,
                name=name,
                idempotent=idempotent,
                timeout=timeout,
                approve=approve,
                access=access,
                mode=mode,
                schema=schema,
            )
            if tool.name in self._tools:
                raise AlreadyExists(f"the tool {tool.name} is declared twice", next="Give each a name of its own.")
            _bring(tool, self._tools)
            return function

        return declare if function is None else declare(function)

    def service(
        self,
        method: str,
        schema: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        idempotent: bool = False,
        timeout: float | None = None,
        approve: bool = False,
        access: Access = "execute",
    ) -> Callable[[Function], Function]:
        """Declare a function as a service: a method `host/service/action/version` of JSON-RPC, and a tool at once.

        `schema` is the JSON Schema of its params, which come by name where the function's parameters are its
        properties, or else as one object to its one parameter; without it the signature tells, as of a tool. `name` is
        the tool's, else made of the method; the others are as of a tool.
        """

        def declare(function: Function) -> Function:
            tool = service_of(
                function,
                method,
                schema,
                name=name,
                idempotent=idempotent,
                timeout=timeout,
                approve=approve,
                access=access,
            )
            if any(known.service == method for known in self._tools.values()):
                raise AlreadyExists(f"the service {method} is declared twice", next="Give each a method of its own.")
            if tool.name in self._tools:
                raise AlreadyExists(f"the tool {tool.name} is declared twice", next="Give this one a name=.")
            _bring(tool, self._tools)
            return function

        return declare

    def agent(
        self,
        name: str,
        *,
        instructions: str = "",
        description: str = "",
        model: str | None = None,
        tools: Sequence[Callable[..., Any] | Tool | str] = (),
        skills: Iterable[str] = (),
        memory: bool = True,
        approve: Iterable[str] = (),
        limits: Limits | None = None,
    ) -> Agent:
        """Declare an agent that asks a language model.

        `instructions` may hold `{long_term_memory_notes}`, where its notes about the user go. `model`: another than the
        settings' `llm.model`. `tools`: functions of the app or any others, and names of registered tools. `skills`:
        those that it can load, the first first. `memory`: it recalls and remembers what users say. `approve`: names of
        tools that a person has to allow, call by call. `limits`: what a turn may take.
        """
        agent = Agent(
            name,
            "llm",
            description,
            instructions,
            model,
            tuple(self._tool_of(each) for each in tools if not isinstance(each, str)),
            tuple(each for each in tools if isinstance(each, str)),
            tuple(skills),
            memory,
            frozenset(approve),
            limits or Limits(),
        )
        self._declare(agent)
        return agent

    def add_skill(
        self,
        name: str,
        *,
        instructions: str,
        description: str = "",
        tools: Iterable[Callable[..., Any] | Tool | str] = (),
        requires: Iterable[str] = (),
        optional: Iterable[str] = (),
        parent: str | None = None,
        version: str = "1.0.0",
    ) -> None:
        """Declare a skill that agents load when they need it: instructions in Markdown, and the tools they speak of.

        `description` is what an agent knows of it before. `requires`: skills that are loaded with it; `optional`: those
        it can use when it is asked to. `parent`: the skill that it is a part of.
        """
        given = [each if isinstance(each, str) else self._tool_of(each) for each in tools]
        for tool in given:
            if isinstance(tool, Tool):
                _bring(tool, self._tools)
        names = [each if isinstance(each, str) else each.name for each in given]
        self._add(
            Declared(
                name,
                description,
                instructions,
                dict.fromkeys(names),
                tuple(requires),
                tuple(optional),
                parent,
                label=version,
            )
        )

    def add_skills(self, folder: Path | str) -> None:
        """Declare the skills of a folder: of its SKILL.md, or of one in each folder below it."""
        for each in load_folders(Path(folder)):
            self._add(_declared(each))

    def _add(self, skill: Declared) -> None:
        if skill.name in self._expertise:
            raise AlreadyExists(f"the skill {skill.name} is declared twice", next="Give each a name of its own.")
        self._expertise[skill.name] = skill

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str = "",
        description: str | None = None,
        mime_type: str | None = None,
        complete: Mapping[str, Completing] | None = None,
    ) -> Callable[[Function], Function]:
        """Declare a function as what clients of MCP read under an address, or under each that a template makes.

        `shop://orders/{order}` gives the function its `order`, decoded once; a value that could lead out of a folder,
        such as `..`, is refused before. It returns a text, bytes, `ResourceContents`, or a list of these; a parameter
        annotated `Run` is the engine's to give. `complete`: for each parameter what it could be, a list or a function
        of what was typed so far.
        """

        def declare(function: Function) -> Function:
            found = resource_of(
                function,
                uri,
                name=name,
                title=title,
                description=description,
                mime_type=mime_type,
                complete=complete,
            )
            if uri in self._resources:
                raise AlreadyExists(f"the resource {uri} is declared twice", next="Give each an address of its own.")
            if uri.startswith(OWN_SCHEME):
                raise AlreadyExists(f"{uri} is the engine's own", next="Give it another scheme, such as shop:.")
            self._resources[uri] = found
            return function

        return declare

    @overload
    def prompt(self, function: Function, /) -> Function: ...

    @overload
    def prompt(
        self,
        /,
        *,
        name: str | None = None,
        title: str = "",
        description: str | None = None,
        complete: Mapping[str, Completing] | None = None,
    ) -> Callable[[Function], Function]: ...

    def prompt(
        self,
        function: Function | None = None,
        /,
        *,
        name: str | None = None,
        title: str = "",
        description: str | None = None,
        complete: Mapping[str, Completing] | None = None,
    ) -> Function | Callable[[Function], Function]:
        """Declare a function as a prompt that people choose in clients of MCP: its parameters are what they fill in.

        It returns a text, a block such as `Image`, a `Message`, or a list of these; a parameter annotated `Run` is the
        engine's to give. `complete`: for each parameter what it could be, a list or a function of what was typed so
        far.
        """

        def declare(function: Function) -> Function:
            found = prompt_of(function, name=name, title=title, description=description, complete=complete)
            if found.name in self._prompts:
                raise AlreadyExists(f"the prompt {found.name} is declared twice", next="Give each a name of its own.")
            self._prompts[found.name] = found
            return function

        return declare if function is None else declare(function)

    def updated(self, uri: str) -> None:
        """Tell the clients that follow a resource that it has changed, whichever process they are connected to.

        Call it once the change can be read, anywhere in a program that is served or that works: in a tool, in a thread.
        It returns at once. All tenants that the program is served for are told; elsewhere there is nobody to tell.
        """
        for teller in [*self._tellers]:
            teller.updated(uri)

    def run_by(self, teller: Teller) -> None:
        """Have an engine tell what is updated, as long as it is there."""
        self._tellers.add(teller)

    def system(self, name: str, *, description: str = "") -> Callable[[Handler], Handler]:
        """Declare a function as an agent: it is given each message as an `Incoming`, and what it returns is the answer.

        It may be called again after a crash, with the same `run_id`; what it answers is said once.
        """

        def declare(handler: Handler) -> Handler:
            self._declare(Agent(name, "system", description, handler=handler))
            return handler

        return declare

    def ui(self, name: str, *, description: str = "") -> Callable[[Channel], Channel]:
        """Declare a function as a channel: a way to agents that the engine does not know, such as mail.

        It is given `Agents` and its own name, and runs as long as a process serves the app's agents: once in each
        process, and for each tenant there. When it fails it begins anew, ever later; at the end it is cancelled. What
        it hears it sends with `agents.send`, what comes back it sees with `agents.watch`.
        """

        def declare(channel: Channel) -> Channel:
            self._declare(Agent(name, "ui", description, channel=channel))
            return channel

        return declare

    def _declare(self, agent: Agent) -> None:
        if agent.name in self._agents:
            raise AlreadyExists(f"the agent {agent.name} is declared twice", next="Give each a name of its own.")
        self._agents[agent.name] = agent

    def _tool_of(self, given: Callable[..., Any] | Tool) -> Tool:
        if isinstance(given, Tool):
            return given
        known = next((tool for tool in self._tools.values() if _is_of(tool, given)), None)
        worked = next((skill for skill in self._skills.values() if skill.function is given), None)
        if known is not None or worked is None:
            return known or tool_of(given)
        return tool_of(given, name=worked.name, timeout=worked.timeout, mode="event")


def _declared(folder: FolderSkill) -> Declared:
    files = {path: File(content, path in folder.executable) for path, content in folder.files.items()}
    return Declared(
        folder.name,
        folder.description,
        folder.instructions,
        {tool.name: tool.access for tool in folder.tools},
        folder.requires,
        folder.optional,
        folder.parent,
        files,
        folder.version,
        folder.front_matter,
        {tool.name: tool.config for tool in folder.tools if tool.config},
    )


def _bring(tool: Tool, tools: dict[str, Tool]) -> None:
    """Have a tool be among others, under a name that is its own."""
    if tool.name in RESERVED:
        raise AlreadyExists(
            f"no tool can be called {tool.name}",
            why="the engine has one of that name itself",
            next="Give it another: `@app.tool(name=...)`.",
        )
    known = tools.setdefault(tool.name, tool)
    if known is not tool and not (known.function and tool.function and known.function.call == tool.function.call):
        raise AlreadyExists(
            f"two functions are called {tool.name}",
            why="a tool's name is its own, whichever agent or skill has it",
            next="Give one of them another: `@app.tool(name=...)`.",
        )


def _tool_of_skill(skill: Skill) -> Tool | None:
    """A worker's skill as a tool that goes to workers; None where a model could not be told what it takes."""
    if skill.name in RESERVED:
        return None
    try:
        return tool_of(skill.function, name=skill.name, timeout=skill.timeout, mode="event")
    except InvalidInput:
        return None


def _is_of(tool: Tool, function: Callable[..., Any]) -> bool:
    return tool.function is not None and tool.function.call is function
