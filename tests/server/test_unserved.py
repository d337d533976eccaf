"""Agents that nobody serves: they are marked, never chosen, and who talks to one is told so at once."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from holdfast import App
from holdfast.agents import presence
from holdfast.core.config import Config
from holdfast.core.errors import Unavailable
from holdfast.engine import Engine, open_engine
from tests.agents.stage import Player, caller_of, told
from tests.clock import Clock
from tests.server.chatting import say
from tests.server.conftest import running
from tests.server.socket_client import client
from tests.server.test_chat import STREAM, events_of, kinds
from tests.server.wire import Site

pytestmark = pytest.mark.req("UI-05", "STM-05")

SOON = 2.0  # seconds in which it is told, as is promised


def app_of(*agents: str) -> App:
    """A program with these agents."""
    app = App()
    for name in agents:
        app.agent(name, memory=False)
    return app


@pytest.fixture
async def engine(
    config: Config, model: Player, no_models: None, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Engine]:
    """An engine on which `support` and `default` were served once, and are not now."""
    monkeypatch.setattr("holdfast.engine.Caller", caller_of(model))
    async with open_engine(config=config) as engine:
        async with own(engine).serving(app_of("support", "default")):
            pass
        yield engine


def own(engine: Engine) -> Engine:
    """The engine as a program of its own has it: it shares nothing with the server but the database."""
    return engine.tenant("default")


@pytest.fixture
async def site(engine: Engine) -> AsyncIterator[Site]:
    """A server that serves no agent itself."""
    async with running(engine, engine.config) as site:
        yield site


async def served(site: Site) -> dict[str, bool]:
    found = (await site.ask("GET", "/api/agents")).json()["agents"]
    return {agent["name"]: agent["served"] for agent in found}


async def test_agents_are_marked_as_served_while_a_process_serves_them(site: Site) -> None:
    before = await served(site)
    async with own(site.engine).serving(app_of("support")):
        during = await served(site)
    after = await served(site)

    assert before == {"default": False, "support": False}
    assert during == {"default": False, "support": True}
    assert after == before


async def test_a_process_that_died_is_noticed_when_it_was_not_heard_of_for_a_while(
    site: Site, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "EVERY", 3600)  # it says nothing meanwhile, as if it had died
    async with own(site.engine).serving(app_of("support")):
        assert (await served(site))["support"]

        await clock.advance(timedelta(seconds=16))

        assert not (await served(site))["support"]


async def test_a_process_that_died_on_this_machine_is_noticed_when_another_begins(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await gone.wait()
    with monkeypatch.context() as patched:
        patched.setattr(presence.os, "getpid", lambda: gone.pid)
        dead = site.engine.agents.presence.reporter()
        await dead.report(["default"])
    assert (await served(site))["default"]

    async with own(site.engine).serving(app_of("support")):
        assert await served(site) == {"default": False, "support": True}


async def test_a_message_to_an_agent_that_nobody_serves_is_kept_and_that_is_told_at_once(
    site: Site, model: Player
) -> None:
    model.says("It is in Cologne.")
    began = time.monotonic()

    reply = await say(site, "Where is it?", session_id="web-1")

    assert time.monotonic() - began < SOON
    kept = reply.json()
    assert (reply.status, kept["state"], kept["reply"], kept["agent_id"]) == (202, "queued", None, "support")
    assert "no process serves the agent support" in kept["note"]
    assert "holdfast up APP" in kept["note"]
    async with own(site.engine).serving(app_of("support")):
        talk = await site.engine.conversations.find(session_id="web-1")
        assert talk is not None
        async with asyncio.timeout(20), site.engine.agents.watch(talk.id, "support") as events:
            async for event in events:
                if event.kind == "answer":
                    assert event.text == "It is in Cologne."
                    break


async def test_a_stream_ends_with_that_the_message_is_queued(site: Site) -> None:
    began = time.monotonic()

    reply = await say(site, "Where is it?", headers=STREAM)

    assert time.monotonic() - began < SOON
    events = events_of(reply.body)
    assert kinds(events) == ["ready", "queued"]
    assert events[0]["run_id"] == events[1]["run_id"]
    assert "no process serves the agent support" in events[1]["text"]


async def test_a_socket_tells_it_and_goes_on_when_somebody_serves_the_agent(site: Site, model: Player) -> None:
    model.says("It is in Cologne.")
    async with client(site, session_id="web-1") as ann:
        await ann.send("message", text="Where is it?")
        frames = await ann.until("queued")
        async with own(site.engine).serving(app_of("support")):
            frames += await ann.until("done")

    sent = next(frame for frame in frames if frame["kind"] == "sent")
    queued = next(frame for frame in frames if frame["kind"] == "queued")
    assert queued["run_id"] == sent["run_id"]
    assert "no process serves the agent support" in queued["text"]
    assert [frame["text"] for frame in frames if frame["kind"] == "answer"] == ["It is in Cologne."]


async def test_a_message_that_was_answered_before_has_its_answer_though_nobody_serves_the_agent_now(
    site: Site, model: Player
) -> None:
    model.says("It is in Cologne.")
    said = {"message": "Where is it?", "agent_id": "support", "session_id": "web-1", "key": "m-1"}
    async with own(site.engine).serving(app_of("support")):
        first = await site.ask("POST", "/api/chat", json=said)

    again = await site.ask("POST", "/api/chat", json=said)

    assert (again.status, again.json()["reply"]) == (200, "It is in Cologne.")
    assert again.json()["run_id"] == first.json()["run_id"]


async def test_a_server_that_starts_meanwhile_is_not_called_absent(site: Site, model: Player) -> None:
    model.says("Good morning.")

    asking = asyncio.create_task(say(site, "Hello"))
    async with own(site.engine).serving(app_of("support")):
        reply = await asking

    assert (reply.status, reply.json()["reply"]) == (200, "Good morning.")


async def test_an_agent_that_was_stored_just_now_is_served_where_any_is(site: Site, model: Player) -> None:
    model.says("Ahoy.")
    async with own(site.engine).serving(app_of("support")):
        await site.ask("PUT", "/api/agents/pirate", json={"instructions": "Talk like a pirate.", "memory": False})

        reply = await say(site, "Hello", agent_id="pirate")

    assert (reply.status, reply.json()["reply"]) == (200, "Ahoy.")


@pytest.mark.parametrize(
    ("agents", "chosen"), [(["support"], "support"), (["default"], "default"), (["support", "default"], "default")]
)
async def test_without_a_name_the_only_served_agent_answers_else_the_default_one(
    site: Site, agents: list[str], chosen: str
) -> None:
    async with own(site.engine).serving(app_of(*agents)):
        reply = await site.ask("POST", "/api/chat", json={"message": "Hello"})

    assert (reply.status, reply.json()["agent_id"]) == (200, chosen)


async def test_where_it_is_not_clear_who_is_meant_those_who_are_served_are_told(site: Site) -> None:
    async with own(site.engine).serving(app_of("support", "sales")):
        unclear = await site.ask("POST", "/api/chat", json={"message": "Hello"})
    nobody = await site.ask("POST", "/api/chat", json={"message": "Hello"})

    assert (unclear.status, unclear.code) == (400, "invalid_input")
    assert "sales, support" in unclear.json()["detail"]
    assert (nobody.status, nobody.code) == (503, "unavailable")
    assert "holdfast up" in nobody.json()["next"]


async def test_a_python_program_is_told_too(engine: Engine) -> None:
    with pytest.raises(Unavailable, match="no process serves the agent support"):
        await told(engine, "support", "Hello", user="ann")
