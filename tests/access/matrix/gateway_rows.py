"""The rows of the gateway and of sockets: the engine's own tools by MCP and by JSON-RPC, resources, methods, frames."""

from typing import Any

from tests.access.matrix import objects as of
from tests.access.matrix.objects import AGENT, Kind
from tests.access.matrix.rows import Row
from tests.access.matrix.rules import (
    ADOPTION,
    HIDDEN,
    MINE,
    MINE_LIST,
    READ,
    SESSION,
    SESSION_ADOPTION,
    SHARED,
    SHARED_LIST,
    SKILL,
    SKILL_LIST,
    WRITE,
    Rule,
)

ENVELOPE = {"host": "shop", "service": "{name}", "action": "say", "version": "1.0", "data": {"text": "Hello"}}
PLATFORM = READ.but("the program: the tenants that it is served to", stranger="404")
# A session of MCP is of its user and, where the key is an agent's, of the agent.
MCP_SESSION = MINE.but("mine, an agent's apart from its user's", agent="404")
# Who may not write sees no tool that does.
AGENT_SESSION = SESSION.but("session: of another's a new one begins; not there for who only reads", reader="404")
SKILL_TOOL = SKILL_LIST.but(
    "skill, as a list that is not there for others", ann="404", bob="404", reader="404", backend="404", stranger="404"
)
# Documents in a collection that the agent does not have.
OTHERS = SHARED.but("shared, not in the agent's collections", agent="404")
OTHERS_LIST = OTHERS.as_list("shared, not in the agent's collections, listed")
WRITE_TOOL = READ.but("write: not there for who only reads", reader="404")
FRAME = MINE.but("mine, in the conversation of the socket", reader="403")


def tool(name: str, rule: Rule, kind: Kind | None = None, body: Any = None, **more: Any) -> list[Row]:
    """One of the engine's own tools, by both ways."""
    return [Row(name=name, kind=kind, rule=rule, way=way, body=body, **more) for way in ("tool", "rpc")]


def shown(name: str, rule: Rule, kind: Kind, body: Any = None, **more: Any) -> list[Row]:
    """One of the engine's own tools that shows objects."""
    return tool(name, rule, kind, body, lists=True, shows=True, **more)


def mcp(name: str, rule: Rule, kind: Kind | None = None, body: Any = None, **more: Any) -> Row:
    """A method of MCP."""
    return Row(name=name, rule=rule, kind=kind, body=body, way=more.pop("way", "mcp"), **more)


def resource(uri: str, parameter: str, value: str) -> dict[str, Any]:
    """What completes a parameter of a resource."""
    return {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": parameter, "value": value}}


OWN_TOOLS = [
    *shown("search_tools", SHARED_LIST, of.tool, {"query": "{subject}", "limit": 20}),
    *tool("call_tool", SHARED, of.tool, {"name": "{name}", "arguments": {"text": "Hello"}}),
    *tool("ask_agent", AGENT_SESSION, of.conversation, {"agent": AGENT, "message": "Hello", "session_id": "{session}"},
          uses_up=True),
    *tool("edit_notes", WRITE_TOOL, body={"agent": AGENT, "operation": "append", "content": "So."}),
    *tool("edit_notes", WRITE_TOOL.but("write, for an agent its own", agent="404"), case="of another agent",
          body={"agent": "desk", "operation": "append", "content": "So."}),
    *shown("list_agents", SHARED_LIST.but("shared, as a list; an agent sees itself", agent="absent"),
           of.stored_agent),
    *shown("list_conversations", MINE_LIST, of.own_session, {"limit": 100}),
    *tool("read_conversation", MINE, of.conversation, {"session_id": "{session}"}),
    *tool("read_conversation", MINE.but("mine, for an agent those with it", agent="404"), of.approval,
          {"session_id": "{session}"}, case="with another agent"),
    *tool("read_conversation", ADOPTION, of.nobodys_conversation, {"session_id": "{session}"}, case="of nobody"),
    *tool("read_notes", READ.but("read, for an agent its own", agent="404"), body={"agent": "desk"},
          case="of another agent"),
    *shown("read_notes", MINE_LIST, of.notes, {"agent": AGENT}),
    *shown("recall", MINE_LIST, of.memory, {"query": "{subject}", "limit": 50}),
    *shown("recall", SHARED_LIST, of.organization_memory, {"query": "{subject}", "limit": 50},
           case="of the organization"),
    *shown("search_knowledge", SHARED_LIST, of.organization_document, {"query": "{subject}", "limit": 20}),
    *shown("search_knowledge", OTHERS_LIST, of.closed_document, {"query": "{subject}", "limit": 20},
           case="in a collection"),
    *shown("search_knowledge", MINE_LIST, of.user_document, {"query": "{subject}", "limit": 20}, case="one's own"),
    *tool("read_document", MINE, of.user_document, {"document": "{id}"}),
    *tool("read_document", SHARED, of.organization_document, {"document": "{document}"}, case="by its name"),
    *tool("read_document", OTHERS, of.closed_document, {"document": "{id}"}, case="in a collection"),
    *tool("analyze_large_document", WRITE_TOOL, body={"question": "{unique}"}),
    *tool("analyze_large_document", MINE.but("mine, to change: not there for who only reads", reader="404"),
          of.user_document, {"question": "Why?", "document": "{id}"}, case="of a document"),
    *tool("analyze_large_document", MINE.but("mine, an agent's apart, not there for who only reads", reader="404",
          agent="404"), of.research, {"question": "Why?", "research_id": "{id}"}, case="of an earlier one"),
    *shown("list_documents", SHARED_LIST, of.organization_document),
    *shown("list_documents", OTHERS_LIST, of.closed_document, case="in a collection"),
    *shown("list_documents", MINE_LIST, of.user_document, case="one's own"),
    *tool("remember", WRITE_TOOL, body={"content": "Tea {unique}"}),
    *shown("search_skills", SKILL_TOOL, of.skill, {"query": "{subject}", "limit": 20}),
    *tool("use_skill", SKILL, of.skill, {"name": "{name}"}),
    *tool("use_skill", HIDDEN, of.other_skill, {"name": "{name}"}, case="that the agent does not have"),
]  # fmt: skip

RESOURCES = [
    Row(name="holdfast://skills/{name}", rule=SKILL, kind=of.skill, way="resource"),
    Row(name="holdfast://notes/{agent}", rule=MINE_LIST, kind=of.notes, way="resource", lists=True, shows=True),
    Row(name="holdfast://conversations/{session_id}", rule=MINE, kind=of.conversation, way="resource"),
    Row(name="knowledge://{collection}/{document}", rule=SHARED, kind=of.organization_document, way="resource"),
    Row(name="knowledge://{collection}/{document}", rule=MINE, kind=of.user_document, way="resource",
        case="one's own"),
    Row(name="knowledge://{collection}/{document}", rule=OTHERS, kind=of.closed_document, way="resource",
        case="in a collection"),
    Row(name="knowledge://{collection}/{document}/pages/{page}", rule=SHARED, kind=of.organization_document,
        way="resource"),
]  # fmt: skip

METHODS = [
    mcp("server/discover", READ),
    mcp("tools/list", SHARED_LIST, of.tool, lists=True, shows=True),
    mcp("tools/call", SHARED, of.tool, {"name": "{name}", "arguments": {"text": "Hello"}}),
    mcp("resources/list", SKILL_LIST, of.skill, lists=True, shows=True),
    mcp("resources/templates/list", READ),
    mcp("resources/read", READ, body={"uri": f"holdfast://notes/{AGENT}"}),
    mcp("prompts/list", READ),
    mcp("prompts/get", PLATFORM, body={"name": "greet"}),
    mcp("completion/complete", SKILL_LIST, of.skill, resource("holdfast://skills/{left}name{right}", "name", "skill"),
        case="of skills", lists=True, shows=True),
    mcp("resources/list", SHARED_LIST, of.organization_document, case="of documents", lists=True, shows=True),
    mcp("completion/complete", SHARED_LIST, of.organization_document,
        {**resource("knowledge://{left}collection{right}/{left}document{right}", "document", "document"),
         "context": {"arguments": {"collection": "default"}}}, case="of documents", lists=True, shows=True),
    mcp("completion/complete", MINE_LIST, of.own_session,
        resource("holdfast://conversations/{left}session_id{right}", "session_id", "session"), case="of conversations",
        lists=True, shows=True),
    mcp("subscriptions/listen", READ, way="stream", body={"notifications": {"toolsListChanged": True}}),
]  # fmt: skip

# Of clients with sessions.
LEGACY = [
    mcp("initialize", READ, way="session", body={"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}),
    mcp("ping", MCP_SESSION, of.mcp_session, way="session"),
    mcp("logging/setLevel", MCP_SESSION, of.mcp_session, {"level": "error"}, way="session"),
    mcp("resources/subscribe", MCP_SESSION, of.mcp_session, {"uri": "holdfast://notes/support"}, way="session"),
    mcp("resources/unsubscribe", MCP_SESSION, of.mcp_session, {"uri": "holdfast://notes/support"}, way="session"),
    mcp("tools/list", MCP_SESSION, of.mcp_session, way="session"),
    Row(name="GET /mcp", rule=MCP_SESSION, kind=of.mcp_session, way="stream", headers={"mcp-session-id": "{session}"}),
    Row(name="DELETE /mcp", rule=MCP_SESSION, kind=of.mcp_session, headers={"mcp-session-id": "{session}"},
        uses_up=True),
    Row(name="GET /mcp/sse", rule=READ, way="stream"),
    Row(name="POST /mcp/message", rule=MCP_SESSION, kind=of.sse_session, query={"session_id": "{session}"},
        body={"jsonrpc": "2.0", "id": 1, "method": "ping"}),
]  # fmt: skip

RPC = [
    Row(name="rpc.discover", rule=SHARED_LIST, kind=of.tool, way="rpc", lists=True, shows=True),
    Row(name="shop/{name}/say/1.0", rule=SHARED, kind=of.tool, way="rpc", body={"text": "Hello"}),
    Row(name="POST /rpc", rule=SHARED, kind=of.tool, case="by the envelope", body=ENVELOPE),
]

FRAMES = [
    Row(name="message", rule=SESSION, kind=of.conversation, way="socket", body={"text": "Hello"},
        query={"session_id": "{session}"}, shows=True, uses_up=True),
    Row(name="message", rule=SESSION_ADOPTION, kind=of.nobodys_conversation, way="socket", case="of nobody",
        body={"text": "Hello"}, query={"session_id": "{session}"}, shows=True, uses_up=True),
    Row(name="approve", rule=FRAME.but("mine, to decide: not for an agent", agent="403 404 404 404"), kind=of.approval,
        way="socket", body={"approval_id": "{id}"}, uses_up=True),
    Row(name="deny", rule=FRAME.but("mine, to decide: not for an agent", agent="403 404 404 404"), kind=of.approval,
        way="socket", body={"approval_id": "{id}"}, uses_up=True),
    Row(name="cancel", rule=FRAME, kind=of.run, way="socket", body={"run_id": "{id}"}, uses_up=True),
    Row(name="retry", rule=FRAME, kind=of.cancelled_run, way="socket", body={"run_id": "{id}"}, uses_up=True),
    Row(name="ping", rule=WRITE, way="socket", query={"session_id": "{unique}"}),
]  # fmt: skip

GATEWAY = [*OWN_TOOLS, *RESOURCES, *METHODS, *LEGACY, *RPC, *FRAMES]
