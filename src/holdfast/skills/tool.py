"""Tools: what a model sees of them, what a call needs, and how they run."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, get_args
from uuid import UUID

from holdfast.llm.model import ToolSpec
from holdfast.skills.definition_scan import ToolWarning
from holdfast.skills.request import Backend, RequestTemplate

if TYPE_CHECKING:
    from holdfast.skills.function_tools import Function

Kind = Literal["function", "rest", "graphql", "jsonrpc", "mcp_server", "python", "javascript", "bash", "java"]
Access = Literal["read", "write", "execute"]
Mode = Literal["inline", "event"]
HeldFor = Literal["proposal", "altered"]  # its source has another definition; plain SQL has changed the stored one
Origin = Literal["code", "db", "source"]

KINDS: tuple[Kind, ...] = get_args(Kind)
SCRIPTS: tuple[Kind, ...] = ("python", "javascript", "bash")
MODES: tuple[Mode, ...] = get_args(Mode)
LEVELS: tuple[Access, ...] = get_args(Access)  # each includes those before it
LONGEST_TIMEOUT = 86_400.0  # seconds
# Names of the engine's own tools. No other tool can have one: a model that uses it means the engine's tool.
RESERVED = frozenset(
    {
        "analyze_large_document",
        "ask_agent",
        "call_tool",
        "edit_notes",
        "list_agents",
        "list_conversations",
        "list_documents",
        "manage_long_term_memory",
        "read_conversation",
        "read_document",
        "read_notes",
        "recall",
        "remember",
        "run_code",
        "search_knowledge",
        "search_skills",
        "search_tools",
        "use_skill",
    }
)
GRANTED = frozenset({"run_code"})  # those that an agent has only if its definition names them


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a model can call.

    `parameters` is the JSON Schema of its arguments. `access` is what a call needs. `idempotent`: the engine may run it
    again after a crash. `approve`: a person has to approve each call. `mode`: `inline` runs here, `event` by a worker
    through the log; None: by a worker if one serves it, for kinds that call back ends. `function` is the declared
    function, `request` how a call becomes an HTTP request, `backend` how the back end is reached; `reference` names any
    other implementation. `service` is its JSON-RPC method, if it is a service.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    kind: Kind = "function"
    access: Access = "execute"
    mode: Mode | None = None
    idempotent: bool = False
    approve: bool = False
    timeout: float | None = None
    function: "Function | None" = None
    request: RequestTemplate | None = None
    backend: Backend | None = None
    reference: str = ""
    service: str | None = None
    id: UUID | None = None  # None: it is built in and has no row
    version: int = 0
    tags: tuple[str, ...] = ()  # of its operation in the document of its source

    @property
    def is_imported(self) -> bool:
        """Whether its schema comes from a source's document, and describes what the back end takes and assumes."""
        return self.backend is not None

    @property
    def spec(self) -> ToolSpec:
        """The specification that a model sees."""
        return ToolSpec(self.name, self.description, dict(self.parameters), self.access == "read")


def dotted_name(service: str) -> str:
    """Return the name of a JSON-RPC method in MCP, which allows no slashes."""
    return service.replace("/", ".")


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """A registered tool, with the data for people and administrators.

    `label` is the version that people see. `permissions` limit what agents may do with it (see skills/permissions.py).
    `held`: nobody has approved its definition, so it is neither shown nor called. `hash`: of the pinned definition of a
    tool from a source. `warnings`: what is suspicious in that.
    """

    tool: Tool
    id: UUID
    version: int
    label: str
    app_name: str
    display_name: str
    origin: Origin
    source: str | None
    operation: str | None
    permissions: Mapping[str, Any]
    active: bool
    calls: int
    failures: int
    latency_ms: float | None
    created_at: datetime
    updated_at: datetime
    updated_by: str
    held: HeldFor | None = None
    hash: str | None = None
    warnings: tuple[ToolWarning, ...] = ()
