"""Every operation that takes a session id answers a foreign id, one of nobody's and an unknown one alike."""

import inspect
import json
import pkgutil
import re
from collections.abc import Awaitable, Callable, Iterator
from importlib import import_module
from typing import Any
from urllib.parse import urlencode

import pytest
from langchain_core.messages import HumanMessage

import holdfast.adapters
from holdfast.adapters.adk import PostgresSessionService
from holdfast.adapters.langchain import HoldfastChatMessageHistory
from holdfast.engine import Engine
from holdfast.gateway.builtin import own_resources, own_tools
from holdfast.memory import session
from holdfast.server.app import OPERATIONS
from holdfast.server.openapi import document
from tests.logins import login_of
from tests.server import mcp_wire
from tests.server.chatting import say
from tests.server.conftest import make_key
from tests.server.socket_client import client
from tests.server.wire import Site

SECRET = "the code is 4711"
NAMES = {"session", "session_id", "instead_of"}  # of arguments that are a session's id
DOCUMENT: dict[str, Any] = json.loads(json.dumps(document(OPERATIONS, root_path="")))
NO_MEMORY = "01a1e46d-e642-7c64-ab40-8811e1183def"
HEADER = b'{"format":"holdfast.memories","version":1}\n'

Asking = Callable[["Door", str], Awaitable[Any]]


class Door:
    """A user of the desk, who asks by every way there is."""

    def __init__(self, site: Site, engine: Engine, key: str, user: str) -> None:
        self.site = site
        self.engine = engine
        self.key = key
        self.user = user

    async def http(self, method: str, path: str, json: Any = None, **query: str) -> Any:
        """What is answered, but for the ids and times in it."""
        asked = path + (f"?{urlencode(query)}" if query else "")
        given: dict[str, Any] = {} if json is None else {"json": json}
        reply = await self.site.ask(method, asked, key=self.key, **given)
        return reply.status, reply.body.decode()

    async def socket(self, session_id: str) -> Any:
        """What a socket says first; and the agent answers there."""
        async with client(self.site, key=self.key, session_id=session_id) as socket:
            await socket.send("message", text="Hello")
            await socket.until("done")
            return socket.ready

    async def tool(self, name: str, **arguments: Any) -> Any:
        """What one of the engine's own tools gives over MCP."""
        reply = await mcp_wire.call(self.site, name, arguments, key=self.key)
        return reply.status, reply.body.decode()

    async def resource(self, uri: str) -> Any:
        """What a resource is over MCP."""
        reply = await mcp_wire.ask(self.site, "resources/read", {"uri": uri}, key=self.key)
        return reply.status, reply.body.decode()

    async def adk(self, id: str) -> Any:
        """What ADK gets, makes and lists; its program is trusted, and so it sees what is nobody's."""
        service = PostgresSessionService(self.engine)
        who: Any = {"app_name": "default", "user_id": self.user}
        before = await service.get_session(**who, session_id=id)
        made = await service.create_session(**who, session_id=id) if before is None else before
        listed = [each.id for each in (await service.list_sessions(**who)).sessions]
        await service.delete_session(**who, session_id=id)
        return made.id, [len(made.events)], id in listed

    async def langchain(self, id: str) -> Any:
        """What LangChain's history reads, adds and clears."""
        history = HoldfastChatMessageHistory(id, self.engine, user=self.user)
        before = await history.aget_messages()
        await history.aadd_messages([HumanMessage("Hello")])
        after = await history.aget_messages()
        await history.aclear()
        return [each.content for each in before], [each.content for each in after]


def owned(id: str) -> dict[str, str]:
    return {"scope": "session", "name": id}


async def fork(door: Door, id: str) -> Any:
    own = await door.engine.conversations.create(user=door.user)
    return await door.http("POST", f"/api/conversations/{own.id}/fork", {"session_id": id})


async def activate(door: Door, id: str) -> Any:
    path, query = "/api/sessions/active", {"agent_id": "support"}
    return [
        await door.http("PUT", path, {"session_id": id}, **query),
        await door.http("GET", path, **query),
        await door.http("PUT", path, {"session_id": "other", "instead_of": id}, **query),
    ]


async def load(door: Door, id: str) -> Any:
    reply = await door.site.ask(
        "POST", f"/api/memories/import?{urlencode(owned(id))}", key=door.key, body=HEADER,
        headers={"Content-Type": "application/x-ndjson"},
    )  # fmt: skip
    return reply.status, reply.body.decode()


HTTP: dict[str, Asking] = {
    "POST /api/chat": lambda door, id: door.http(
        "POST", "/api/chat", {"message": "Hello", "agent_id": "support", "session_id": id}
    ),
    "POST /api/conversations": lambda door, id: door.http("POST", "/api/conversations", {"session_id": id}),
    "GET /api/conversations/by-session": lambda door, id: door.http(
        "GET", "/api/conversations/by-session", session_id=id
    ),
    "POST /api/conversations/{id}/fork": fork,
    "PUT /api/sessions/active": activate,
    "POST /api/sessions/end": lambda door, id: door.http("POST", "/api/sessions/end", {"session_id": id}),
    "POST /api/memories": lambda door, id: door.http(
        "POST", "/api/memories", {"owner": owned(id), "memories": [{"content": "tea"}]}
    ),
    "GET /api/memories": lambda door, id: door.http("GET", "/api/memories", also_past="true", **owned(id)),
    "POST /api/memories/search": lambda door, id: door.http(
        "POST", "/api/memories/search", {"owner": owned(id), "query": "code"}
    ),
    "POST /api/memories/context": lambda door, id: door.http(
        "POST", "/api/memories/context", {"session": id, "query": "code"}
    ),
    "POST /api/memories/why-not": lambda door, id: door.http(
        "POST", "/api/memories/why-not", {"owner": owned(id), "query": "code", "id": NO_MEMORY}
    ),
    "GET /api/memories/export": lambda door, id: door.http("GET", "/api/memories/export", **owned(id)),
    "POST /api/memories/import": load,
}
OTHERS: dict[str, Asking] = {
    "WS /ws/{agent}": lambda door, id: door.socket(id),
    "tool ask_agent": lambda door, id: door.tool("ask_agent", agent="support", message="Hello", session_id=id),
    "tool read_conversation": lambda door, id: door.tool("read_conversation", session_id=id),
    "resource holdfast://conversations/{session_id}": lambda door, id: door.resource(f"holdfast://conversations/{id}"),
}
# Programs that use the engine in their own process are trusted: what is nobody's becomes their user's.
TRUSTED: dict[str, Asking] = {
    "PostgresSessionService": lambda door, id: door.adk(id),
    "HoldfastChatMessageHistory": lambda door, id: door.langchain(id),
}
# ADK's memory notes where a text was said; it belongs to the user.
OF_USERS = {"PostgresMemoryService"}


def plain(answer: Any, id: str) -> str:
    """An answer without what is another one each time."""
    text = json.dumps(answer).replace(id, "ID")
    text = re.sub(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", "UUID", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)", "TIME", text)
    return re.sub(r'\\*"(latency|took|seconds|cursor|at)\w*\\*": *\\*"?[\d.:TZ-]+\\*"?', "VARIES", text)


async def begun(engine: Engine, id: str, user: str | None) -> str:
    """A conversation in which something secret was said and is remembered; what it looks like."""
    talk = await engine.conversations.create(session_id=id, user=user, agent=None if user is None else "sales")
    await engine.conversations.append(talk.id, SECRET, context="text:user:ann")
    await engine.memory.remember(session(id), SECRET)
    if user is not None:
        await engine.sessions.activate(user=user, agent="sales", session_id=id)
    return await seen(engine, id)


async def seen(engine: Engine, id: str) -> str:
    talk = await engine.conversations.find(session_id=id)
    assert talk is not None
    memories = await engine.memory.list(session(id, conversation=talk.id))
    active = talk.user and await engine.sessions.active(user=talk.user, agent="sales")
    return repr((talk, await engine.conversations.since(talk.id, 0), memories, active and active.session_id))


@pytest.mark.req("SAFE-02", "STM-05")
@pytest.mark.parametrize("name", [*HTTP, *OTHERS, *TRUSTED])
async def test_a_foreign_session_id_is_answered_as_an_unknown_one(desk: Site, name: str) -> None:
    engine = desk.engine.tenant(await desk.engine.tenants.id_of("default"))
    bob = Door(desk, engine, await make_key(engine, "bob", scopes=("read", "write")), "bob")
    ask = {**HTTP, **OTHERS, **TRUSTED}[name]
    before = [await begun(engine, "s-foreign", "ann"), await begun(engine, "s-nobodys", None)]

    unknown = plain(await ask(bob, "s-unknown"), "s-unknown")
    foreign = plain(await ask(bob, "s-foreign"), "s-foreign")
    nobodys = foreign if name in TRUSTED else plain(await ask(bob, "s-nobodys"), "s-nobodys")

    assert foreign == unknown
    assert nobodys == unknown
    assert SECRET not in foreign + nobodys
    assert [await seen(engine, "s-foreign"), await seen(engine, "s-nobodys")] == before


def test_every_http_operation_that_takes_a_session_id_is_in_the_table() -> None:
    found = {
        f"{method.upper()} {path}"
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
        if takes_session(operation)
    }

    assert found == HTTP.keys()


async def test_every_tool_and_resource_that_takes_a_session_id_is_in_the_table(engine: Engine) -> None:
    tools = {f"tool {tool.name}" for tool in own_tools(engine) if NAMES & tool.parameters.get("properties", {}).keys()}
    resources = {f"resource {each.uri}" for each in own_resources(engine) if "session" in each.uri}

    assert {"WS /ws/{agent}", *tools, *resources} == OTHERS.keys()


def test_every_adapter_that_takes_a_session_id_is_in_the_table() -> None:
    modules = [
        import_module(each.name) for each in pkgutil.iter_modules(holdfast.adapters.__path__, "holdfast.adapters.")
    ]
    classes = {
        each for module in modules for _, each in inspect.getmembers(module, inspect.isclass)
        if each.__module__ == module.__name__
    }  # fmt: skip
    found = {each.__name__ for each in classes if takes_id(each)}

    assert found == TRUSTED.keys() | OF_USERS


def takes_id(kind: type) -> bool:
    methods = [method for _, method in inspect.getmembers(kind, inspect.isfunction)]
    return any(NAMES & inspect.signature(method).parameters.keys() for method in methods)


def takes_session(operation: dict[str, Any]) -> bool:
    asked = {each["name"]: each for each in operation.get("parameters", ()) if each["in"] == "query"}
    names = asked.keys() - ({"scope"} if "session" not in json.dumps(asked.get("scope", {}).get("schema")) else set())
    bodies = [each.get("schema", {}) for each in operation.get("requestBody", {}).get("content", {}).values()]
    return bool(NAMES & names) or {"scope", "name"} <= names or any(map(has_session, bodies))


def has_session(schema: Any) -> bool:
    """Whether a body has a field for a session's id, or for an owner of memories, who may be a session."""
    fields = dict(properties(schema))
    return bool(NAMES & fields.keys()) or any("OwnerName" in json.dumps(each) for each in fields.values())


def properties(schema: Any) -> Iterator[tuple[str, Any]]:
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    yield from schema.get("properties", {}).items()


@pytest.mark.req("STM-05")
async def test_who_takes_the_id_of_a_removed_session_finds_nothing_of_it(desk: Site) -> None:
    engine = desk.engine.tenant(await desk.engine.tenants.id_of("default"))
    ann, bob = [
        Door(desk, engine, await make_key(engine, name, scopes=("read", "write")), name) for name in ("ann", "bob")
    ]
    made = await say(desk, SECRET, key=ann.key, session_id="S")
    _, stored = await ann.http("POST", "/api/memories", {"owner": owned("S"), "memories": [{"content": SECRET}]})
    memory = json.loads(stored)["memories"][0]["id"]

    removed = await ann.http("DELETE", f"/api/conversations/{made.json()['conversation_id']}")
    await say(desk, "Hello", key=bob.key, session_id="S")
    listed = await bob.http("GET", "/api/memories", also_past="true", **owned("S"))
    revived = [await door.http("PATCH", f"/api/memories/{memory}", {"ttl": 86400}) for door in (ann, bob)]

    assert removed[0] == 204
    assert json.loads(listed[1])["memories"] == []
    assert [status for status, _ in revived] == [404, 404]


# Sessions that were begun without a user


async def written_first(engine: Engine, id: str) -> None:
    """What LangChain's own client writes, which knows no users."""
    async with login_of(engine, await engine.database.tenant()) as login:
        login.history(id).add_messages([HumanMessage(SECRET)])


@pytest.mark.req("CONV-09", "STM-01")
@pytest.mark.parametrize("who", ["active", "act-as", "admin"])
async def test_a_session_that_langchain_wrote_first_is_gone_on_with_by_who_may_adopt_it(desk: Site, who: str) -> None:
    engine = desk.engine.tenant(await desk.engine.tenants.id_of("default"))
    id = "0190c3f0-0000-4000-8000-000000000001"
    scopes = {"active": ("read", "write"), "act-as": ("read", "write", "act-as"), "admin": ("read", "write", "admin")}
    key = await make_key(engine, "backend" if who == "act-as" else "ann", scopes=scopes[who])
    headers = {"Holdfast-User": "ann"} if who == "act-as" else {}
    if who == "active":
        active = {"session_id": id}
        await desk.ask("PUT", "/api/sessions/active?agent_id=support", key=key, json=active, headers=headers)
    await written_first(engine, id)
    written = await engine.conversations.find(session_id=id)
    assert written is not None

    body = mcp_wire.modern("tools/call", {"name": "read_conversation", "arguments": {"session_id": id}})
    read = await desk.ask("POST", "/mcp", key=key, json=body, headers={**mcp_wire.mirror(body), **headers})
    before = await engine.conversations.get(written.id)
    reply = await say(desk, "Hello", key=key, headers=headers, session_id=id)

    after = await engine.conversations.get(written.id)
    assert SECRET in read.body.decode()
    assert (before.user, after.user) == (None, "ann")
    assert reply.json()["conversation_id"] == str(written.id)
    if who != "act-as":  # whose client sends no headers
        async with client(desk, key=key, session_id=id) as socket:
            assert socket.ready["conversation_id"] == str(written.id)
