import asyncio
from typing import Any, cast

import pytest

from holdfast import agent
from holdfast.access.principals import Principal
from holdfast.agents import Sent
from holdfast.execution.outcomes import Outcome
from holdfast.gateway.gateway import Gateway
from holdfast.llm import ModelRequest
from tests.agents.stage import PATIENCE, Player
from tests.gateway.shop import ADMIN, MEMBER, READER, Person, caller

OWN = [
    "search_tools",
    "call_tool",
    "analyze_large_document",
    "ask_agent",
    "edit_notes",
    "list_agents",
    "list_conversations",
    "list_documents",
    "read_conversation",
    "read_document",
    "read_notes",
    "recall",
    "remember",
    "search_knowledge",
    "search_skills",
    "use_skill",
]
WRITING = {"analyze_large_document", "ask_agent", "edit_notes", "remember"}
OF_SKILLS = {"search_skills", "use_skill"}


async def ending(gateway: Gateway) -> str:
    """How ann's one turn ends."""
    agents = gateway.engine.agents
    [run] = await agents.runs.list(user="ann")
    async with asyncio.timeout(PATIENCE), agents.watch(run.conversation, "support") as events:
        async for event in events:
            if event.kind in ("done", "error"):
                break
    return (await agents.runs.get(run.id)).state


async def call(gateway: Gateway, who: Principal, name: str, /, **arguments: Any) -> dict[str, Any]:
    """What a tool gives that does what it should."""
    outcome = await gateway.call(who, name, arguments)
    assert outcome.status == "done", outcome.text
    return cast(dict[str, Any], outcome.result)


async def refused(gateway: Gateway, who: Principal, name: str, /, **arguments: Any) -> Outcome:
    """How a call ends that is not to succeed."""
    outcome = await gateway.call(who, name, arguments)
    assert outcome.status == "failed", outcome.text
    return outcome


@pytest.mark.req("MCP-01", "MCP-09")
async def test_the_engines_own_tools_are_listed_first_as_far_as_the_scopes_reach(gateway: Gateway) -> None:
    for scopes, speaker, hidden in (
        (ADMIN, None, set[str]()),
        (MEMBER, None, OF_SKILLS),
        (READER, None, OF_SKILLS | WRITING),
        (MEMBER, "support", set[str]()),
        (READER, "support", WRITING),
        (frozenset[str](), None, {*OWN}),
    ):
        view = await gateway.tools(await caller(gateway, scopes=scopes, agent=speaker))

        own = [each.name for each in view.tools if each.own]
        assert own == [name for name in OWN if name not in hidden]
        assert [each.name for each in view.tools][: len(own)] == own


@pytest.mark.req("MCP-01")
async def test_what_is_remembered_is_recalled_by_its_user_and_by_nobody_else(gateway: Gateway) -> None:
    ann, bob = await caller(gateway), await caller(gateway, "bob")
    await call(gateway, ann, "remember", content="Ann drinks tea.", importance=1)

    hers = await call(gateway, ann, "recall", query="what does Ann drink?")
    his = await call(gateway, bob, "recall", query="what does Ann drink?")

    assert [each["content"] for each in hers["memories"]] == ["Ann drinks tea."]
    assert hers["memories"][0]["scope"] == "user"
    assert his["memories"] == []


@pytest.mark.req("MCP-01")
async def test_an_agents_key_recalls_what_the_agent_knows(gateway: Gateway) -> None:
    await gateway.engine.memory.remember(agent("support"), "Parcels to Norway take a week.")
    speaking = await caller(gateway, agent="support")

    found = await call(gateway, speaking, "recall", query="how long do parcels to Norway take?")
    without = await call(gateway, await caller(gateway), "recall", query="how long do parcels to Norway take?")

    assert [each["scope"] for each in found["memories"]] == ["agent"]
    assert without["memories"] == []


@pytest.mark.req("MCP-01")
async def test_notes_are_edited_and_read_for_the_caller_alone(gateway: Gateway) -> None:
    ann, bob = await caller(gateway), await caller(gateway, "bob")
    await call(gateway, ann, "edit_notes", agent="support", operation="append", content="# Ann\nLikes tea.")

    assert "Likes tea." in (await call(gateway, ann, "read_notes", agent="support"))["notes"]
    assert (await call(gateway, bob, "read_notes", agent="support"))["notes"] == ""
    missing = await refused(gateway, ann, "edit_notes", agent="support", operation="append")
    assert "append requires content" in missing.text


@pytest.mark.req("MCP-07")
async def test_whoever_speaks_for_an_agent_can_name_no_other(gateway: Gateway) -> None:
    speaking = await caller(gateway, agent="support")

    agents = await call(gateway, speaking, "list_agents")

    assert [each["name"] for each in agents["agents"]] == ["support"]
    for name, more in (
        ("read_notes", {}),
        ("edit_notes", {"operation": "delete_all_notes"}),
        ("ask_agent", {"message": "hello"}),
    ):
        outcome = await refused(gateway, speaking, name, agent="clerk", **more)
        assert outcome.code == "not_found"


@pytest.mark.req("MCP-01")
async def test_an_agent_answers_and_its_work_is_told_on_the_way(gateway: Gateway, model: Player) -> None:
    model.says({"text": "I look.", "calls": [{"name": "track", "arguments": {"parcel": "P-1"}}]}, "In Cologne.")
    client = Person()
    ann = await caller(gateway)

    async with asyncio.timeout(PATIENCE):
        outcome = await gateway.call(ann, "ask_agent", {"agent": "support", "message": "where is P-1?"}, client=client)

    assert outcome.status == "done", outcome.text
    assert outcome.result["answer"] == "In Cologne."
    assert client.heard == ["I look.", "calls track", "track is done"]
    read = await call(gateway, ann, "read_conversation", session_id=outcome.result["session_id"])
    assert [each["role"] for each in read["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert read["messages"][-1]["text"] == "In Cologne."
    assert read["messages"][1]["called"] == ["track"]


@pytest.mark.req("MCP-01")
async def test_a_conversation_goes_on_where_its_session_is_named(gateway: Gateway, model: Player) -> None:
    model.says("Hello Ann.", "Still Ann.")
    ann = await caller(gateway)
    first = await call(gateway, ann, "ask_agent", agent="support", message="I am Ann.")

    again = await call(gateway, ann, "ask_agent", agent="support", message="who am I?", session_id=first["session_id"])

    assert again["answer"] == "Still Ann."
    assert "I am Ann." in str(model.requests[-1])
    listed = await call(gateway, ann, "list_conversations")
    assert [each["session_id"] for each in listed["conversations"]] == [first["session_id"]]


@pytest.mark.req("MCP-01")
async def test_conversations_of_others_are_as_those_that_there_are_not(gateway: Gateway, model: Player) -> None:
    told = await call(gateway, await caller(gateway), "ask_agent", agent="support", message="secret")
    bob, clerk = await caller(gateway, "bob"), await caller(gateway, agent="clerk")

    for other in (bob, clerk):
        outcome = await refused(gateway, other, "read_conversation", session_id=told["session_id"])
        nothing = await refused(gateway, other, "read_conversation", session_id="nothing")
        assert outcome.text.replace(told["session_id"], "nothing") == nothing.text
        assert (await call(gateway, other, "list_conversations"))["conversations"] == []
    own = await call(gateway, bob, "ask_agent", agent="support", message="?", session_id=told["session_id"])
    read = await call(gateway, bob, "read_conversation", session_id=told["session_id"])
    assert own["session_id"] == told["session_id"]
    assert [each["text"] for each in read["messages"]] == ["?", "Done."]


@pytest.mark.req("MCP-01")
async def test_a_call_that_a_person_has_to_allow_is_told_with_its_id(gateway: Gateway, model: Player) -> None:
    model.says({"calls": [{"name": "refund", "arguments": {"order": "A-1"}}]}, "Paid.")
    ann = await caller(gateway)

    told = await call(gateway, ann, "ask_agent", agent="clerk", message="pay A-1")

    assert told["state"] == "waiting"
    [approval] = await gateway.engine.agents.approvals.pending(user="ann")
    waits = {"approval_id": str(approval.id), "tool": "refund", "arguments": {"order": "A-1", "amount": 1}}
    assert told["waits_for"] == waits


@pytest.mark.req("MCP-01")
async def test_a_turn_ends_when_its_caller_goes_away(gateway: Gateway, model: Player) -> None:
    reached = asyncio.Event()

    def slow(request: ModelRequest) -> str:
        model.hold()
        reached.set()
        return "Late."

    model.says(slow)
    asking = asyncio.create_task(
        gateway.call(await caller(gateway), "ask_agent", {"agent": "support", "message": "take your time"})
    )
    async with asyncio.timeout(PATIENCE):
        await reached.wait()

    asking.cancel()
    await asyncio.wait([asking])

    assert await ending(gateway) == "cancelled"  # while the model is held: its answer would end it, too


@pytest.mark.req("MCP-01")
async def test_a_turn_ends_whose_caller_goes_away_while_it_begins(
    gateway: Gateway, model: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents, saying = gateway.engine.agents, asyncio.Event()
    send = agents.send

    async def slowly(*args: Any, **options: Any) -> Sent:
        sent = await send(*args, **options)
        saying.set()
        await asyncio.sleep(0.1)  # it is made, and nobody knows it yet
        return sent

    monkeypatch.setattr(agents, "send", slowly)
    model.hold()
    asking = asyncio.create_task(
        gateway.call(await caller(gateway), "ask_agent", {"agent": "support", "message": "never mind"})
    )
    async with asyncio.timeout(PATIENCE):
        await saying.wait()
        asking.cancel()
        await asyncio.wait([asking])

    assert await ending(gateway) == "cancelled"  # while the model is held: its answer would end it, too


@pytest.mark.req("MCP-01")
async def test_skills_are_read_with_those_of_their_tools_that_the_caller_sees(gateway: Gateway) -> None:
    admin, support = await caller(gateway), await caller(gateway, agent="support")

    found = await call(gateway, admin, "search_skills", query="sending goods back")
    used = await call(gateway, admin, "use_skill", name="returns")
    theirs = await call(gateway, support, "use_skill", name="returns")

    assert found["skills"] == [{"name": "returns", "description": "Sending goods back."}]
    assert used == {"name": "returns", "instructions": "Ask why first.", "tools": ["refund", "track"]}
    assert {**theirs, "tools": sorted(theirs["tools"])} == used
    outcome = await refused(gateway, await caller(gateway, agent="clerk"), "use_skill", name="returns")
    assert outcome.code == "not_found"


@pytest.mark.req("MCP-01")
async def test_an_agent_that_takes_too_long_works_on_and_says_where(gateway: Gateway, model: Player) -> None:
    model.hold()
    ann, asked = await caller(gateway), {"agent": "support", "message": "take your time"}

    outcome = await gateway.call(ann, "ask_agent", asked, timeout=1)  # which is less than calls may take

    told = outcome.result
    assert told["state"] == "working"
    [run] = await gateway.engine.agents.runs.list(user="ann")
    model.release()
    assert run.state in ("queued", "running")
    assert (await gateway.engine.conversations.get(run.conversation)).session_id == told["session_id"]
