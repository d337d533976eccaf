"""One conversation, four doors: unmodified LangChain, ADK, the service and HTTP write it, and each reads it whole."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from google.adk.events.event import Event
from google.adk.sessions.session import Session
from google.genai.types import Content, FunctionCall, FunctionResponse, Part
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from holdfast.adapters.adk import PostgresSessionService
from holdfast.adapters.langchain import HoldfastChatMessageHistory
from holdfast.conversations import NodeInput
from holdfast.core.config import Config
from holdfast.engine import Engine
from tests.logins import Login, tenant_login
from tests.server.conftest import make_key, running
from tests.server.wire import Site

pytestmark = [pytest.mark.acceptance, pytest.mark.req("CONV-09", "STM-01", "ADK-01")]

TENANT = "doors"
ANN: Any = {"app_name": "shop", "user_id": "ann"}

# Who speaks, what they say, which tools they call, which call they answer: as every door must tell it.
Line = tuple[str, str, tuple[tuple[str, str, str], ...], str | None]
WRITTEN: list[Line] = [
    ("user", "Where is my parcel?", (), None),
    ("assistant", "", (("call-1", "track", "7"),), None),
    ("tool", "at the border", (), "call-1"),
    ("assistant", "It is at the border.", (), None),
    ("user", "And the other one?", (), None),
    ("assistant", "", (("call-2", "track", "8"), ("call-3", "track", "9")), None),
    ("tool", "lost", (), "call-2"),
    ("tool", "found", (), "call-3"),
    ("assistant", "One is lost, one is found.", (), None),
    ("user", "Refund it.", (), None),
    ("assistant", "", (("call-4", "track", "8"),), None),
    ("tool", "refunded", (), "call-4"),
    ("assistant", "Done.", (), None),
    ("user", "Thanks 😀\0\ud83d", (), None),
]


@pytest.fixture
async def langchain(engine: Engine) -> AsyncIterator[Login]:
    async with tenant_login(engine, TENANT) as login:
        yield login


@pytest.fixture
async def site(engine: Engine, config: Config) -> AsyncIterator[Site]:
    config = config.model_copy(update={"server": config.server.model_copy(update={"port": 0})})
    async with running(engine, config) as site:
        yield site


async def test_a_conversation_is_the_same_through_every_door(engine: Engine, langchain: Login, site: Site) -> None:
    shop, session_id = engine.tenant(TENANT), str(uuid4())
    adk = PostgresSessionService(shop)
    key = await make_key(engine, "ann", tenant=TENANT, scopes=["read", "write"])

    write_with_langchain(langchain, session_id)
    await write_with_adk(adk, session_id)
    talk = await shop.conversations.find(session_id=session_id)
    assert talk is not None
    await write_with_the_service(shop, talk.id)
    posted = await site.ask(
        "POST", f"/api/conversations/{talk.id}/nodes", key=key, json={"content": WRITTEN[-1][1], "expect": 13}
    )
    assert posted.status == 201

    whole = await adk.get_session(**ANN, session_id=session_id)
    assert whole is not None
    ours = HoldfastChatMessageHistory(session_id, shop, user="ann")
    nodes = (await site.ask("GET", f"/api/conversations/{talk.id}/nodes", key=key)).json()["nodes"]
    assert told_by_adk(whole) == WRITTEN
    assert told_by_langchain(langchain.history(session_id).messages) == WRITTEN
    assert told_by_langchain(await ours.aget_messages()) == WRITTEN
    assert [told_by_a_node(node) for node in nodes] == WRITTEN
    assert [node["seq"] for node in nodes] == list(range(1, len(WRITTEN) + 1))
    seen = await shop.conversations.messages(talk.id, reader="support", tools=True)
    assert [message["tool_call_id"] for message in seen if "tool_call_id" in message] == [
        f"call-{number}" for number in range(1, 5)
    ]


def write_with_langchain(login: Login, session_id: str) -> None:
    login.history(session_id).add_messages(
        [
            HumanMessage(WRITTEN[0][1]),
            AIMessage("", tool_calls=[{"name": "track", "args": {"parcel": "7"}, "id": "call-1"}]),
            ToolMessage(WRITTEN[2][1], tool_call_id="call-1", name="track"),
            AIMessage(WRITTEN[3][1]),
        ]
    )


async def write_with_adk(service: PostgresSessionService, session_id: str) -> None:
    session = await service.get_session(**ANN, session_id=session_id)
    assert session is not None
    calls = [Part(function_call=FunctionCall(id=id, name=name, args={"parcel": it})) for id, name, it in WRITTEN[5][2]]
    results = [
        Part(function_response=FunctionResponse(id=line[3], name="track", response={"result": line[1]}))
        for line in WRITTEN[6:8]
    ]
    for author, role, parts in (
        ("user", "user", [Part(text=WRITTEN[4][1])]),
        ("support", "model", calls),
        ("support", "user", results),
        ("support", "model", [Part(text=WRITTEN[8][1])]),
    ):
        await service.append_event(session, Event(author=author, content=Content(role=role, parts=parts)))


async def write_with_the_service(engine: Engine, talk: Any) -> None:
    call = {"tool_calls": [{"id": "call-4", "name": "track", "arguments": {"parcel": "8"}}]}
    drafts = [
        NodeInput(content=WRITTEN[9][1], context="text:user:ann"),
        NodeInput(content="", context="text:agent:support", payload=call),
        NodeInput(content=WRITTEN[11][1], context="text:agent:tool", payload={"tool_call_id": "call-4"}),
        NodeInput(content=WRITTEN[12][1], context="text:agent:support"),
    ]
    await engine.conversations.append_all(talk, drafts)


def told_by_langchain(messages: list[BaseMessage]) -> list[Line]:
    roles = {"human": "user", "ai": "assistant", "tool": "tool"}
    return [
        (
            roles[message.type],
            str(message.content),
            tuple(
                (str(call["id"]), call["name"], call["args"]["parcel"]) for call in getattr(message, "tool_calls", [])
            ),
            getattr(message, "tool_call_id", None),
        )
        for message in messages
    ]


def told_by_adk(session: Session) -> list[Line]:
    lines: list[Line] = []
    for event in session.events:
        results = event.get_function_responses()
        if results:
            lines += [("tool", str((result.response or {})["result"]), (), result.id) for result in results]
            continue
        parts = event.content.parts if event.content and event.content.parts else []
        calls = tuple(
            (str(call.id), str(call.name), (call.args or {})["parcel"]) for call in event.get_function_calls()
        )
        text = "".join(part.text or "" for part in parts)
        lines.append(("user" if event.author == "user" else "assistant", text, calls, None))
    return lines


def told_by_a_node(node: dict[str, Any]) -> Line:
    _, name, value = node["context"].split(":", 2)
    payload: dict[str, Any] = node["payload"] or {}
    role = "user" if name == "user" else "tool" if value == "tool" else "assistant"
    calls = tuple((call["id"], call["name"], call["arguments"]["parcel"]) for call in payload.get("tool_calls", []))
    return role, node["content"], calls, payload.get("tool_call_id")
