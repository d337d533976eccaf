import asyncio
import json
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast.agents import Event, Sent
from holdfast.agents.broadcast import Watch
from holdfast.core.errors import Overloaded
from holdfast.server import streams
from holdfast.server.request_limits import RequestSlot
from tests.agents.stage import Player, calls, reached
from tests.server.chatting import held, say
from tests.server.conftest import make_key
from tests.server.socket_client import client
from tests.server.wire import PATIENCE, Site

STREAM = {"Accept": "text/event-stream"}


def events_of(body: bytes) -> list[dict[str, Any]]:
    """The events of a stream, each with its `id`."""
    return [event_of(block) for block in body.decode().split("\n\n") if block and not block.startswith(":")]


def event_of(block: str) -> dict[str, Any]:
    id, kind, data = block.strip().split("\n")
    event = json.loads(data.removeprefix("data: "))
    assert kind == f"event: {event['kind']}"
    return {"id": id.removeprefix("id: "), **event}


async def events_as_they_come(chunks: AsyncIterable[bytes]) -> AsyncIterator[dict[str, Any]]:
    async for chunk in chunks:
        for event in events_of(chunk):
            yield event


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["kind"] for event in events]


@pytest.mark.req("STM-05")
async def test_a_message_is_answered_and_the_whole_turn_is_stored(desk: Site, model: Player) -> None:
    model.says(calls(("track", {"parcel": "AB-1"}), text="Let me look."), "It is in Cologne.")

    reply = await say(desk, "Where is AB-1?", session_id="web-1")

    assert reply.status == 200, reply
    told = reply.json()
    assert told["reply"] == "It is in Cologne."
    assert (told["session_id"], told["agent_id"], told["state"]) == ("web-1", "support", "done")
    assert told["usage"]["steps"] == 2
    talk = await desk.engine.conversations.find(session_id="web-1")
    assert talk is not None
    assert (talk.user, str(talk.id)) == ("local", told["conversation_id"])
    nodes = await desk.engine.conversations.last(talk.id, 10)
    assert [node.context for node in nodes] == [
        "text:user:local", "text:agent:support", "text:agent:tool", "text:agent:support",
    ]  # fmt: skip
    assert str(nodes[-1].id) == told["node_id"]


@pytest.mark.req("STM-05")
async def test_without_a_session_a_new_one_begins_and_without_an_agent_the_default_one_answers(desk: Site) -> None:
    first = (await desk.ask("POST", "/api/chat", json={"message": "Hello"})).json()
    second = (await desk.ask("POST", "/api/chat", json={"message": "And?", "session_id": first["session_id"]})).json()

    assert first["agent_id"] == "default"
    assert first["conversation_id"] == second["conversation_id"]
    assert len(await desk.engine.conversations.last(UUID(first["conversation_id"]), 10)) == 4


@pytest.mark.req("STM-05", "AGENT-01")
async def test_a_message_that_was_answered_before_is_told_again_from_the_rows(desk: Site, model: Player) -> None:
    model.says("It is in Cologne.")
    said = {"message": "Where is AB-1?", "agent_id": "support", "session_id": "web-1", "key": "m-1"}
    first = (await desk.ask("POST", "/api/chat", json=said)).json()

    again = (await desk.ask("POST", "/api/chat", json=said)).json()
    events = events_of((await desk.ask("POST", "/api/chat", json=said, headers=STREAM)).body)

    assert (again["reply"], again["run_id"]) == ("It is in Cologne.", first["run_id"])
    assert kinds(events) == ["ready", "answer", "done"]
    assert len(model.requests) == 1


@pytest.mark.req("STM-05", "AGENT-01")
async def test_a_stream_tells_typed_events_each_with_its_cursor_and_ends_with_the_turn(
    desk: Site, model: Player
) -> None:
    model.says(calls(("track", {"parcel": "AB-1"})), {"text": "It is in Cologne.", "chunks": 3})

    reply = await say(desk, "Where is AB-1?", headers=STREAM)

    assert reply.headers["content-type"].startswith("text/event-stream")
    events = events_of(reply.body)
    assert kinds(events) == ["ready", "action", "observation", "token", "token", "token", "answer", "done"]
    assert all(event["id"] == event["cursor"] for event in events)
    assert {event["run_id"] for event in events} == {events[0]["run_id"]}
    assert "".join(event["text"] for event in events if event["kind"] == "token") == "It is in Cologne."


@pytest.mark.req("STM-05")
async def test_the_same_key_is_said_once_and_has_one_answer(desk: Site, model: Player) -> None:
    model.says("First.", "Second.")

    body = {"message": "Hello", "agent_id": "support", "session_id": "web-1", "key": "m-1"}
    replies = [await desk.ask("POST", "/api/chat", json=body) for _ in range(2)]

    assert [reply.json()["reply"] for reply in replies] == ["First.", "First."]
    assert len(model.requests) == 1


@pytest.mark.req("AGENT-05")
async def test_a_turn_that_waits_for_a_person_says_so_and_goes_on_when_they_have_decided(
    desk: Site, model: Player
) -> None:
    model.says(calls(("refund", {"order": "7"}), ("refund", {"order": "8"})), "Done that.")

    waiting = await say(desk, "Refund 7 and 8", session_id="web-1")
    told = waiting.json()
    for approval in told["approvals"]:
        path, verdict = f"/api/approvals/{approval['id']}", {"decision": "approve"}
        assert (await desk.ask("POST", path, json=verdict)).status == 200
    await reached(desk.engine, UUID(told["run_id"]), "done")
    path = f"/api/conversations/{told['conversation_id']}/events?since={told['cursor']}"
    after = (await desk.ask("GET", path)).json()["events"]

    assert (waiting.status, told["state"], told["reply"]) == (202, "waiting", None)
    assert [approval["arguments"] for approval in told["approvals"]] == [{"order": "7"}, {"order": "8"}]
    observed = [event["text"] for event in after if event["kind"] == "observation"]
    assert observed == ["paid back 7", "paid back 8"]
    assert sorted(kinds(after)) == ["answer", "decision", "decision", "done", "observation", "observation"]


@pytest.mark.req("AGENT-05", "STM-05")
async def test_a_turn_that_waits_says_so_though_somebody_speaks_as_it_asks(
    desk: Site, model: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.says(calls(("refund", {"order": "7"}), ("refund", {"order": "8"})))
    own = desk.engine.tenant(await desk.engine.tenants.id_of("default"))
    spoken: list[Sent] = []
    coming = streams._next  # pyright: ignore[reportPrivateUsage]

    async def interrupted(watch: Watch) -> Event | None:
        event = await coming(watch)
        if event is not None and event.kind == "approval" and not spoken:
            spoken.append(await own.agents.send("support", "Hurry!", user="local", session_id="web-1"))
        return event

    monkeypatch.setattr(streams, "_next", interrupted)

    async with asyncio.timeout(PATIENCE):
        waiting = await say(desk, "Refund 7 and 8", session_id="web-1")

    assert spoken
    assert (waiting.status, waiting.json()["state"]) == (202, "waiting")
    assert len(waiting.json()["approvals"]) == 2


@pytest.mark.req("STM-05", "SAFE-04")
@pytest.mark.parametrize("headers", [{}, STREAM])
async def test_who_is_refused_because_too_many_wait_has_said_nothing(
    desk: Site, model: Player, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise Overloaded("the server is busy", retry_after=5)

    monkeypatch.setattr(RequestSlot, "stay", full)

    reply = await say(desk, "Hello", session_id="web-1", headers=headers)

    assert (reply.status, reply.code) == (429, "overloaded")
    assert await desk.engine.conversations.find(session_id="web-1") is None
    assert model.requests == []


@pytest.mark.req("STM-05", "AGENT-03")
async def test_a_failed_turn_is_a_problem_and_the_conversation_stays_usable(desk: Site, model: Player) -> None:
    model.says({"fail": {"status": 400, "message": "no such model"}}, "Back again.", "And here.")

    failed = await say(desk, "Hello", session_id="web-1")
    details = failed.json()["details"]
    retried = await desk.ask("POST", f"/api/runs/{details['run_id']}/retry")
    await reached(desk.engine, UUID(retried.json()["id"]), "done")
    after = await say(desk, "Still there?", session_id="web-1")

    assert (failed.status, failed.code) == (502, "model_failed")
    assert details["session_id"] == "web-1"
    assert (retried.status, after.json()["reply"]) == (201, "And here.")


@pytest.mark.req("STM-05", "AGENT-01")
async def test_a_failed_turn_ends_a_stream_with_an_error(desk: Site, model: Player) -> None:
    model.says({"fail": {"status": 400, "message": "no such model"}})

    reply = await say(desk, "Hello", headers=STREAM)

    last = events_of(reply.body)[-1]
    assert (reply.status, last["kind"], last["error"]["code"]) == (200, "error", "model_failed")


@pytest.mark.req("STM-05", "SAFE-03")
async def test_a_session_of_another_user_is_as_unknown_as_one_that_is_not_there(desk: Site) -> None:
    ann, bob = [await make_key(desk.engine, name, scopes=["read", "write"]) for name in ("ann", "bob")]
    eve = await make_key(desk.engine, "ann", tenant="acme")
    told = (await say(desk, "My secret", key=ann, session_id="web-1")).json()
    conversation = f"/api/conversations/{told['conversation_id']}/events"

    own = await say(desk, "Hello", key=bob, session_id="web-1")
    elsewhere = await say(desk, "Hello", key=eve, session_id="web-1")

    assert (own.json()["session_id"], own.json()["reply"]) == ("web-1", "Done.")
    assert len({each.json()["conversation_id"] for each in (own, elsewhere)} - {told["conversation_id"]}) == 2
    for key in (bob, eve):
        for headers in ((), STREAM, {**STREAM, "Last-Event-ID": told["cursor"]}):
            reply = await desk.ask("GET", conversation, key=key, headers=headers)
            unknown = await desk.ask("GET", f"/api/conversations/{uuid4()}/events", key=key, headers=headers)
            assert (reply.status, reply.code) == (unknown.status, unknown.code) == (404, "not_found")
    assert (await desk.ask("GET", conversation, key=ann)).status == 200


@pytest.mark.req("STM-05", "SAFE-03")
async def test_a_back_end_serves_many_users_with_one_key(desk: Site) -> None:
    key = await make_key(desk.engine, "shop", scopes=["read", "write", "act-as"])

    replies = [
        await say(desk, "Hello", key=key, session_id="web-1", headers={"Holdfast-User": name})
        for name in ("ann", "bob", "ann")
    ]

    first, other, again = [reply.json()["conversation_id"] for reply in replies]
    talks = [await desk.engine.conversations.get(UUID(id)) for id in (first, other)]
    assert first == again
    assert [(talk.user, talk.session_id) for talk in talks] == [("ann", "web-1"), ("bob", "web-1")]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"message": ""}, 400, "invalid_input"),
        ({"message": "  \n"}, 400, "invalid_input"),
        ({"message": "a" * 1_000_001}, 413, "too_large"),
        ({"message": "Hello", "agent_id": "nobody"}, 404, "not_found"),
        ({"message": "Hello", "agent_id": ""}, 400, "invalid_input"),
        ({"message": "Hello", "busy": "wait"}, 400, "invalid_input"),
        ({"message": "Hello", "colour": "red"}, 400, "invalid_input"),
        ({}, 400, "invalid_input"),
    ],
)
@pytest.mark.req("STM-05", "ENG-07")
async def test_what_cannot_be_said_is_refused(desk: Site, body: dict[str, Any], status: int, code: str) -> None:
    for headers in ((), STREAM):
        reply = await desk.ask("POST", "/api/chat", json=body, headers=headers)

        assert (reply.status, reply.code) == (status, code)


@pytest.mark.req("STM-05")
async def test_a_second_message_is_queued_refused_forked_or_takes_the_place_of_the_first(
    desk: Site, model: Player
) -> None:
    asked = held(model)
    first = asyncio.create_task(say(desk, "One", session_id="web-1"))
    await asked.wait()

    refused = await say(desk, "Two", session_id="web-1", busy="reject")
    queued = asyncio.create_task(say(desk, "Three", session_id="web-1", busy="interrupt"))
    stopped = (await first).json()
    model.release()
    forked = await say(desk, "Four", session_id="web-1", busy="fork")

    assert (refused.status, refused.code) == (409, "busy")
    assert stopped["state"] == "cancelled"
    assert (await queued).json()["state"] == "done"
    assert forked.status == 200


@pytest.mark.req("STM-05", "CONV-07", "AGENT-07")
async def test_messages_that_are_merged_have_one_answer_over_http_and_the_socket(desk: Site, model: Player) -> None:
    asked = held(model)
    model.says("To both.")
    first = asyncio.create_task(say(desk, "One", session_id="web-1"))
    await asked.wait()
    async with client(desk, session_id="web-1") as ann:
        await ann.send("message", text="Two", busy="merge")
        sent = (await ann.until("sent"))[-1]
        merged = asyncio.create_task(say(desk, "Three", session_id="web-1", busy="merge"))
        async with asyncio.timeout(PATIENCE):
            while not (await desk.engine.agents.runs.get(UUID(sent["run_id"]))).merged:  # noqa: ASYNC110 - the row
                await asyncio.sleep(0.01)
        model.release()
        third = (await merged).json()
        events = await ann.until("done")
        while events[-1]["run_id"] != sent["run_id"]:
            events = await ann.until("done")

    assert (await first).json()["reply"] == "Done."
    assert (third["reply"], third["run_id"]) == ("To both.", sent["run_id"])
    assert [event["text"] for event in events if event["kind"] == "answer"][-1] == "To both."
    assert model.requests[-1].messages[-1].content == "Two\n\nThree"


@pytest.mark.req("STM-05")
@pytest.mark.parametrize("settings", [{"request_timeout": 1}])
@pytest.mark.parametrize("headers", [{}, STREAM])
async def test_a_chat_may_take_longer_than_other_requests(
    desk: Site, model: Player, headers: dict[str, str], settings: dict[str, Any]
) -> None:
    model.hold()
    chat = asyncio.create_task(say(desk, "Think about it", headers=headers))
    slow = await desk.ask("GET", "/slow?seconds=5")  # longer than a request may take
    model.release()

    reply = await chat

    assert slow.status == 504
    assert reply.status == 200
    assert b"Done." in reply.body


@pytest.mark.req("STM-06")
async def test_the_turn_goes_on_when_whoever_asked_has_gone(desk: Site, model: Player) -> None:
    asked = held(model)
    async with desk.connect() as wire:
        asking = asyncio.create_task(
            wire.ask("POST", "/api/chat", json={"message": "Hello", "agent_id": "support", "session_id": "web-1"})
        )
        await asked.wait()
        asking.cancel()
    model.release()

    talk = await desk.engine.conversations.find(session_id="web-1")
    assert talk is not None
    run = (await desk.engine.agents.runs.list(conversation=talk.id))[0]
    assert (await reached(desk.engine, run.id, "done", "failed", "cancelled")).state == "done"


@pytest.mark.req("STM-06", "WS-02")
async def test_a_stream_that_broke_off_goes_on_after_the_last_event(desk: Site, model: Player) -> None:
    model.says(
        calls(("track", {"parcel": "AB-1"}), ("track", {"parcel": "AB-2"})), {"text": "In Cologne.", "chunks": 4}
    )
    whole = (await say(desk, "Where?")).json()
    path = f"/api/conversations/{whole['conversation_id']}/events"
    events = (await desk.ask("GET", path)).json()["events"]

    for seen in range(len(events)):
        async with desk.connect() as wire:
            head = {"Host": "127.0.0.1", **STREAM, "Last-Event-ID": events[seen]["cursor"]}
            lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
            await wire.send(f"GET {path}?since=0 HTTP/1.1\r\n{lines}\r\n".encode())
            assert (await wire.reply_without_body()).status == 200
            rest: list[dict[str, Any]] = []
            async with asyncio.timeout(PATIENCE):
                if seen + 1 < len(events):
                    async for event in events_as_they_come(wire.chunks()):
                        rest.append(event)
                        if event["kind"] == "done":
                            break

        assert [event["cursor"] for event in rest] == [event["cursor"] for event in events[seen + 1 :]]


@pytest.mark.req("STM-06")
async def test_pages_of_events_are_as_long_as_asked_and_follow_one_another(desk: Site) -> None:
    for message in ("One", "Two", "Three"):
        told = (await say(desk, message, session_id="web-1")).json()
    path = f"/api/conversations/{told['conversation_id']}/events"

    whole = (await desk.ask("GET", path)).json()
    pages: list[Any] = []
    cursor = "0"
    while page := (await desk.ask("GET", f"{path}?since={cursor}&limit=2")).json():
        if not page["events"]:
            break
        pages += page["events"]
        cursor = page["cursor"]
        assert len(page["events"]) <= 2

    assert kinds(whole["events"]).count("done") == 3
    assert pages == whole["events"]


@pytest.mark.parametrize("headers", [{}, STREAM])
async def test_a_cursor_that_cannot_be_read_is_refused(desk: Site, headers: dict[str, str]) -> None:
    told = (await say(desk, "Hello")).json()

    reply = await desk.ask("GET", f"/api/conversations/{told['conversation_id']}/events?since=abc", headers=headers)

    assert (reply.status, reply.code) == (400, "invalid_input")


async def test_a_silent_stream_gives_signs_of_life(desk: Site, model: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT", 0.05)
    model.hold()
    asyncio.get_running_loop().call_later(0.5, model.release)

    reply = await say(desk, "Hello", headers=STREAM)

    assert reply.body.count(streams.SIGN_OF_LIFE) >= 2
    assert kinds(events_of(reply.body))[-1] == "done"


@pytest.mark.req("SAFE-03")
async def test_a_stream_ends_with_the_key_that_opened_it(desk: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT", 0.1)
    tenant = await desk.engine.tenants.id_of("default")
    made = await desk.engine.keys.create(tenant, "ann")
    told = (await say(desk, "Hello", key=made.text)).json()
    path = f"/api/conversations/{told['conversation_id']}/events"
    async with desk.connect() as wire:
        head = f"Host: 127.0.0.1\r\nAccept: text/event-stream\r\nAuthorization: Bearer {made.text}\r\n"
        await wire.send(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
        assert (await wire.reply_without_body()).status == 200

        await desk.engine.keys.revoke(tenant, made.key.id)

        async with asyncio.timeout(PATIENCE):
            with pytest.raises((asyncio.IncompleteReadError, ValueError)):  # it does not end as a whole one does
                _ = [chunk async for chunk in wire.chunks()]
