"""`App`: declares the agents, tools, handlers and services of a program.

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

`holdfast up shop:app` serves the agents of `app` in `shop.py`. `holdfast worker shop:app` runs its handlers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, overload
from weakref import WeakSet

from holdfast.agents.definitions import Agent, AgentFunction, Channel, Limits
from holdfast.bus.handlers import ATTEMPTS, Handler
from holdfast.core.errors import AlreadyExists, InvalidInput
from holdfast.skills.completers import CompletionSource
from holdfast.skills.folders import FolderSkill, load_folders
from holdfast.skills.function_tools import tool_of
from holdfast.skills.prompt import McpPrompt, prompt_of
from holdfast.skills.resource import OWN_SCHEMES, McpResource, resource_of
from holdfast.skills.service import service_of
from holdfast.skills.skill import DeclaredSkill, SkillContent
from holdfast.skills.tool import RESERVED, Access, Mode, Tool

Function = TypeVar("Function", bound=Callable[..., Any])


class UpdatePublisher(Protocol):
    """The part of an engine that an app needs: it publishes changes of resources."""

    def updated(self, uri: str) -> None:
        """Notify the subscribers of a resource that it has changed."""
        ...


class App:
    """Collects the declarations of a program."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._skills: dict[str, Handler] = {}
        self._expertise: dict[str, DeclaredSkill] = {}
        self._tools: dict[str, Tool] = {}
        self._agents: dict[str, Agent] = {}
        self._resources: dict[str, McpResource] = {}
        self._prompts: dict[str, McpPrompt] = {}
        self._publishers: WeakSet[UpdatePublisher] = WeakSet()

    @property
    def skills(self) -> Mapping[str, Handler]:
        """The handlers of commands, by name."""
        return MappingProxyType(self._skills)

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools, by name."""
        return MappingProxyType(self._tools)

    @property
    def agents(self) -> Mapping[str, Agent]:
        """The agents, by name. Channels are included."""
        return MappingProxyType(self._agents)

    @property
    def resources(self) -> Mapping[str, McpResource]:
        """The resources, by URI or URI template."""
        return MappingProxyType(self._resources)

    @property
    def prompts(self) -> Mapping[str, McpPrompt]:
        """The prompts, by name."""
        return MappingProxyType(self._prompts)

    @property
    def expertise(self) -> Mapping[str, DeclaredSkill]:
        """The skills of agents, by name, as declared with `add_skill` and `add_skills`."""
        return MappingProxyType(self._expertise)

    @property
    def all_tools(self) -> Mapping[str, Tool]:
        """All tools of the app, by name: declared tools, tools of its agents, and handlers that can be tools."""
        tools = dict(self._tools)
        for tool in (tool for agent in self._agents.values() for tool in agent.tools):
            _add_tool(tool, tools)
        for name, skill in self._skills.items():
            if name not in tools and (tool := _tool_of_skill(skill)) is not None:
                tools[name] = tool
        return tools

    def skill(
        self, name: str, *, rate: float | None = None, attempts: int = ATTEMPTS, timeout: float | None = None
    ) -> Callable[[Function], Function]:
        """Declare a function as a handler of commands. Async functions run on the event loop, others in a thread.

        `rate`: maximum number of starts per second, over all workers. `attempts`: maximum number of attempts, unless
        the caller sets it. `timeout`: seconds per attempt. Arguments are passed by name; the result must be JSON.
        An attempt can be repeated after a crash. `current_command().correlation_id` is the same in each attempt.
        """
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"{name!r:.200} is not a valid name of a skill", next='Write @app.skill("name").')

        def declare(function: Function) -> Function:
            if name in self._skills:
                raise AlreadyExists(f"the skill {name} is declared twice", next="Give each a name of its own.")
            self._skills[name] = Handler(name, function, rate, attempts, timeout)
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
        """Declare a function as a tool. Its name, description and JSON Schema come from its signature and docstring.

        Async functions run on the event loop, others in a thread. The engine passes the parameter annotated `Run`.
        `idempotent`: a call can be repeated after a crash; otherwise a person is asked. `timeout`: seconds per call.
        `approve`: each call needs an approval. `access`: the access that an agent needs to call it: read, write or
        execute. `mode`: with `event`, workers run it (`holdfast worker APP`), not this process. `schema`: the JSON
        Schema of its arguments, if the signature cannot express it (see `service`).
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
            _add_tool(tool, self._tools)
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
        """Declare a function as a service: a JSON-RPC method `host/service/action/version` that is also a tool.

        `schema` is the JSON Schema of the params. They are passed by name if the function's parameters are the
        properties of the schema, otherwise as one object to its only parameter. Without it, the schema comes from the
        signature, as for a tool. `name` is the name of the tool, by default derived from the method. The other options
        are those of a tool.
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
            _add_tool(tool, self._tools)
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
        knowledge: bool | Iterable[str] = False,
    ) -> Agent:
        """Declare an agent that uses a language model.

        `instructions`: the agent's notes about the user replace `{long_term_memory_notes}` in it. `model`: overrides
        the setting `llm.model`. `tools`: functions, whether declared in the app or not, and names of registered tools.
        `skills`: names of the skills that it can load, in this order. `memory`: it recalls and stores what users say.
        `approve`: names of tools whose calls need an approval. `limits`: limits of a turn. `knowledge`: it finds and
        reads documents, of all collections or of these.
        """
        if isinstance(knowledge, str):
            raise InvalidInput(
                f"the agent {name!r:.200} cannot be declared",
                why="knowledge is one text, not a list of collections",
                next=f"Write knowledge=[{knowledge!r:.100}].",
            )
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
            knowledge if isinstance(knowledge, bool) else tuple(knowledge),
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
        """Declare a skill that agents load when they need it: instructions in Markdown, and the tools that they use.

        `description`: what an agent sees before it loads the skill. `requires`: skills that are loaded with it.
        `optional`: related skills that are loaded only on request. `parent`: the skill that it is a part of.
        """
        given = [each if isinstance(each, str) else self._tool_of(each) for each in tools]
        for tool in given:
            if isinstance(tool, Tool):
                _add_tool(tool, self._tools)
        names = [each if isinstance(each, str) else each.name for each in given]
        self._add(
            DeclaredSkill(
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
        """Declare the skills of a folder: its own SKILL.md, or the SKILL.md of each subfolder."""
        for each in load_folders(Path(folder)):
            self._add(_declared_skill(each))

    def _add(self, skill: DeclaredSkill) -> None:
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
        complete: Mapping[str, CompletionSource] | None = None,
    ) -> Callable[[Function], Function]:
        """Declare a function as an MCP resource, under a URI or a URI template.

        `shop://orders/{order}` passes `order` to the function, decoded once. Values that could leave a folder, such as
        `..`, are refused. The function returns a text, bytes, `ResourceContents`, or a list of these. The engine passes
        the parameter annotated `Run`. `complete`: completions for each parameter, as a list or as a function of the
        text typed so far.
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
            if uri.startswith(OWN_SCHEMES):
                raise AlreadyExists(f"{uri} is reserved for the engine", next="Give it another scheme, such as shop:.")
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
        complete: Mapping[str, CompletionSource] | None = None,
    ) -> Callable[[Function], Function]: ...

    def prompt(
        self,
        function: Function | None = None,
        /,
        *,
        name: str | None = None,
        title: str = "",
        description: str | None = None,
        complete: Mapping[str, CompletionSource] | None = None,
    ) -> Function | Callable[[Function], Function]:
        """Declare a function as an MCP prompt, which people choose in their client. They fill in its parameters.

        The function returns a text, a block such as `Image`, a `Message`, or a list of these. The engine passes the
        parameter annotated `Run`. `complete`: completions for each parameter, as a list or as a function of the text
        typed so far.
        """

        def declare(function: Function) -> Function:
            found = prompt_of(function, name=name, title=title, description=description, complete=complete)
            if found.name in self._prompts:
                raise AlreadyExists(f"the prompt {found.name} is declared twice", next="Give each a name of its own.")
            self._prompts[found.name] = found
            return function

        return declare if function is None else declare(function)

    def updated(self, uri: str) -> None:
        """Notify MCP clients that subscribe to a resource that it has changed, in all processes.

        Call it after the change can be read, from any thread of a server or a worker, for example in a tool. It returns
        at once. It notifies clients of all tenants that the program is served for. In other programs it does nothing.
        """
        for publisher in [*self._publishers]:
            publisher.updated(uri)

    def add_publisher(self, publisher: UpdatePublisher) -> None:
        """Publish changes of resources with this engine too, as long as the engine exists."""
        self._publishers.add(publisher)

    def system(self, name: str, *, description: str = "") -> Callable[[AgentFunction], AgentFunction]:
        """Declare a function as an agent. It gets each message as an `Incoming` and returns the answer.

        It can be called again after a crash, with the same `run_id`. Only one answer is stored.
        """

        def declare(handler: AgentFunction) -> AgentFunction:
            self._declare(Agent(name, "system", description, handler=handler))
            return handler

        return declare

    def ui(self, name: str, *, description: str = "") -> Callable[[Channel], Channel]:
        """Declare a function as a channel: it connects agents to something outside the engine, such as mail.

        It gets `Agents` and its own name. It runs once per process and tenant, while the process serves the app's
        agents. If it fails, it is restarted with a growing delay. When the process stops, it is cancelled. It passes
        messages to agents with `agents.send`, and receives their events with `agents.watch`.
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
        handler = next((skill for skill in self._skills.values() if skill.function is given), None)
        if known is not None or handler is None:
            return known or tool_of(given)
        return tool_of(given, name=handler.name, timeout=handler.timeout, mode="event")


def _declared_skill(folder: FolderSkill) -> DeclaredSkill:
    files = {path: SkillContent(content, path in folder.executable) for path, content in folder.files.items()}
    return DeclaredSkill(
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


def _add_tool(tool: Tool, tools: dict[str, Tool]) -> None:
    """Add a tool, or raise AlreadyExists if its name is reserved or taken by another function."""
    if tool.name in RESERVED:
        raise AlreadyExists(
            f"the tool name {tool.name} is reserved",
            why="the engine has a tool of this name",
            next="Give it another: `@app.tool(name=...)`.",
        )
    known = tools.setdefault(tool.name, tool)
    if known is not tool and not (known.function and tool.function and known.function.call == tool.function.call):
        raise AlreadyExists(
            f"two functions have the tool name {tool.name}",
            why="tool names are unique across agents and skills",
            next="Give one of them another: `@app.tool(name=...)`.",
        )


def _tool_of_skill(skill: Handler) -> Tool | None:
    """Return a handler as a tool that workers run; None if it cannot be a tool, because of its name or signature."""
    if skill.name in RESERVED:
        return None
    try:
        return tool_of(skill.function, name=skill.name, timeout=skill.timeout, mode="event")
    except InvalidInput:
        return None


def _is_of(tool: Tool, function: Callable[..., Any]) -> bool:
    return tool.function is not None and tool.function.call is function
