import pytest

from tests.agents.stage import Player
from tests.server.chatting import say
from tests.server.conftest import make_key
from tests.server.wire import Site

pytestmark = pytest.mark.req("AGENT-06")


async def test_an_agent_is_stored_talked_to_changed_and_removed(desk: Site, model: Player) -> None:
    model.says("Ahoy.")

    made = await desk.ask("PUT", "/api/agents/pirate", json={"instructions": "Talk like a pirate.", "memory": False})
    changed = await desk.ask(
        "PUT", "/api/agents/pirate", json={"instructions": "Whisper.", "memory": False, "version": 1}
    )
    late = await desk.ask("PUT", "/api/agents/pirate", json={"instructions": "Shout.", "version": 1})
    again = await desk.ask("PUT", "/api/agents/pirate", json={"instructions": "Shout."})
    told = await say(desk, "Hello", agent_id="pirate")
    removed = await desk.ask("DELETE", "/api/agents/pirate")

    assert (made.status, made.json()["version"], changed.json()["version"]) == (200, 1, 2)
    assert (late.status, late.code) == (409, "conflict")
    assert (again.status, again.code) == (409, "already_exists")
    assert told.json()["reply"] == "Ahoy."
    assert "Whisper." in model.requests[0].messages[0].content
    assert removed.status == 204
    assert (await desk.ask("GET", "/api/agents/pirate")).status == 404


async def test_agents_of_a_program_are_listed_and_changed_only_there(desk: Site) -> None:
    listed = (await desk.ask("GET", "/api/agents")).json()["agents"]
    shown = (await desk.ask("GET", "/api/agents/support")).json()
    refused = await desk.ask("PUT", "/api/agents/support", json={"instructions": "Shout.", "version": 1})
    kept = await desk.ask("DELETE", "/api/agents/support")

    assert [agent["name"] for agent in listed] == ["default", "support"]
    assert (shown["instructions"], shown["origin"], shown["approve"]) == ("You help.", "code", ["refund"])
    assert (refused.code, kept.code) == ("already_exists", "already_exists")


@pytest.mark.parametrize("name", ["ui", "tool", "a b", "a" * 101, "é"])
async def test_a_name_that_no_agent_can_have_is_refused(desk: Site, name: str) -> None:
    reply = await desk.ask("PUT", f"/api/agents/{name.replace(' ', '%20')}", json={"instructions": "Hello."})

    assert (reply.status, reply.code) == (400, "invalid_input")


async def test_an_unknown_limit_is_refused(desk: Site) -> None:
    reply = await desk.ask("PUT", "/api/agents/pirate", json={"instructions": "Hello.", "limits": {"step": 3}})

    assert (reply.status, reply.code) == (400, "invalid_input")
    assert "step" in reply.json()["detail"]
    assert (await desk.ask("GET", "/api/agents/pirate")).status == 404


@pytest.mark.req("SAFE-03", "ENG-04")
async def test_what_agents_are_told_is_for_admins_of_their_tenant(desk: Site) -> None:
    user, admin = await make_key(desk.engine, "ann", scopes=["read", "write"]), await make_key(desk.engine, "root")
    other = await make_key(desk.engine, "root", tenant="acme")
    await desk.ask("PUT", "/api/agents/pirate", key=admin, json={"instructions": "Secret.", "active": False})

    listed = await desk.ask("GET", "/api/agents", key=user)

    assert [agent["name"] for agent in listed.json()["agents"]] == ["default", "support"]
    assert b"You help." not in listed.body
    for method, body in [("GET", None), ("PUT", {"instructions": "Hello."}), ("DELETE", None)]:
        reply = await desk.ask(method, "/api/agents/pirate", key=user, json=body)
        assert (reply.status, reply.code) == (403, "forbidden")
    assert (await desk.ask("GET", "/api/agents/pirate", key=other)).status == 404
    assert len((await desk.ask("GET", "/api/agents", key=admin)).json()["agents"]) == 3
