import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID, uuid4

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from holdfast.bus.postgres_log import PostgresLog
from holdfast.engine import open_engine
from holdfast.server import authentication, sockets
from holdfast.server.authentication import COOKIE
from tests.agents.stage import Player, calls, reached
from tests.server.conftest import make_key, running
from tests.server.socket_client import UPGRADE, Client, address, client, closed, kinds, receive, text_of
from tests.server.wire import Site


async def refusal(url: str, headers: Mapping[str, str] | None = None, **options: Any) -> tuple[int, str]:
    """The status and the code that a socket is refused with, before there is one."""
    with pytest.raises(InvalidStatus) as refused:
        async with connect(url, additional_headers=headers, **options):
            pass
    response = refused.value.response
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["x-request-id"]
    return response.status_code, json.loads(bytes(response.body))["code"]


@pytest.mark.req("WS-01")
async def test_plain_text_goes_in_and_nothing_but_answers_come_out(desk: Site, model: Player) -> None:
    model.says(calls(("track", {"parcel": "AB-1"}), text="Let me look."), {"text": "In Cologne.", "chunks": 3}, "Bye.")
    async with connect(address(desk, session_id="web-1")) as socket:
        await socket.send("Where is AB-1?")
        await socket.send("Thanks, bye")

        answers = [await receive(socket), await receive(socket)]

    assert answers == ["In Cologne.", "Bye."]
    talk = await desk.engine.conversations.find(session_id="web-1")
    assert talk is not None
    said = [node.content for node in await desk.engine.conversations.last(talk.id, 10) if node.context]
    assert said[0] == "Where is AB-1?"


@pytest.mark.req("WS-01", "AGENT-05")
async def test_in_plain_text_a_failure_and_a_question_are_sentences(desk: Site, model: Player) -> None:
    model.says({"fail": {"status": 400, "message": "no such model"}}, calls(("refund", {"order": "7"})), "Paid.")
    async with connect(address(desk)) as socket:
        await socket.send("Hello")
        failure = await receive(socket)
        await socket.send("Refund 7")
        question = str(await receive(socket))
        approval = (await desk.engine.agents.approvals.pending())[0]
        await desk.ask("POST", f"/api/approvals/{approval.id}", json={"decision": "approve"})
        answer = await receive(socket)
        await socket.send(" ")
        refused = await receive(socket)

    assert str(failure).startswith("The agent could not answer: ")
    assert question.startswith('The agent asks whether it may use refund with {"order":"7"}.')
    assert f"POST /api/approvals/{approval.id}" in question
    assert answer == "Paid."
    assert refused == "the message is empty. Send a text."


@pytest.mark.req("WS-02", "AGENT-01")
async def test_the_sub_protocol_carries_typed_events(desk: Site, model: Player) -> None:
    model.says(calls(("track", {"parcel": "AB-1"}), text="Let me look."), {"text": "In Cologne.", "chunks": 3})
    async with client(desk, session_id="web-1") as ann:
        await ann.send("message", text="Where is AB-1?", key="m-1")
        frames = await ann.until("done")
        await ann.send("ping")
        pong = await ann.next()

    assert {name: ann.ready[name] for name in ("kind", "session_id", "agent")} == {
        "kind": "ready", "session_id": "web-1", "agent": "support",
    }  # fmt: skip
    (sent,) = (frame for frame in frames if frame["kind"] == "sent")
    assert sent["key"] == "m-1"
    events = [frame for frame in frames if frame["kind"] not in ("sent", "token")]
    assert kinds(events) == ["message", "thought", "action", "observation", "answer", "done"]
    assert events[0]["node_id"] == sent["node_id"]
    assert {event["run_id"] for event in events[1:]} == {sent["run_id"]}
    assert pong == {"kind": "pong"}


@pytest.mark.req("WS-02", "STM-06")
async def test_whoever_comes_back_with_a_cursor_here_or_elsewhere_misses_nothing_and_hears_nothing_twice(
    desk: Site, model: Player
) -> None:
    model.says(calls(("track", {"parcel": "AB-1"}), ("track", {"parcel": "AB-2"})), "Found.", calls(("refund", {})))
    async with client(desk, session_id="web-1") as ann:
        await ann.send("message", text="Where?")
        await ann.until("done")
        await ann.send("message", text="And now?")
        await ann.until("done")
    async with client(desk, session_id="web-1", since="0") as ann:
        whole = [*await ann.until("done"), *await ann.until("done")]

    async with open_engine(config=desk.engine.config) as engine, running(engine, engine.config) as other:
        for seen in range(len(whole) - 1):
            for site in (desk, other):
                async with client(site, session_id="web-1", since=whole[seen]["cursor"]) as back:
                    rest = [await back.next() for _ in whole[seen + 1 :]]
                assert rest == whole[seen + 1 :]


@pytest.mark.req("WS-02", "STM-06")
@pytest.mark.parametrize("pieces", [0, 1, 3, 7])
async def test_half_an_answer_goes_on_on_another_server(desk: Site, model: Player, pieces: int) -> None:
    text = "It is on the way to you, in Cologne as of now."
    model.says({"text": text, "chunks": 8})
    model.hold(after=pieces)
    async with client(desk, session_id="web-1") as ann:
        cursor = ann.ready["cursor"]
        await ann.send("message", text="Where is it?")
        first: list[dict[str, Any]] = []
        while sum(frame["kind"] == "token" for frame in first) < pieces or len(first) < 2:
            first.append(await ann.next())
        cursor = next((frame["cursor"] for frame in reversed(first) if "cursor" in frame), cursor)

    async with (
        open_engine(config=desk.engine.config) as engine,
        running(engine, engine.config) as other,
        client(other, session_id="web-1", since=cursor) as back,
    ):
        model.release()
        rest = await back.until("done")

    said = text_of(first) + text_of(rest)
    assert text.startswith(text_of(first))
    assert said in (text, text_of(first))  # the rest of the pieces, unless the whole answer was faster
    assert [frame["text"] for frame in rest if frame["kind"] == "answer"] == [text]
    assert kinds(rest).count("done") == 1


@pytest.mark.req("WS-02", "ENG-07")
@pytest.mark.parametrize(
    "frame",
    [
        "",
        "{",
        "[]",
        '{"type": "nope"}',
        '{"type": "message"}',
        '{"type": "message", "text": ""}',
        '{"type": "message", "text": "Hello", "busy": "fork"}',
        '{"type": "message", "text": "Hello", "colour": "red"}',
        '{"type": "cancel", "run_id": "7"}',
        '{"type": "ping", "text": "\\ud800"}',
        b"\x00\x01",
    ],
)
async def test_a_bad_frame_is_refused_and_the_socket_lives_on(desk: Site, frame: str | bytes) -> None:
    async with client(desk) as ann:
        await ann.socket.send(frame)
        refused = await ann.next()
        await ann.send("message", text="Hello")

        assert kinds(await ann.until("done"))[-1] == "done"

    assert (refused["kind"], refused["code"]) == ("refused", "invalid_input")
    assert refused["message"]
    assert refused["next"]


@pytest.mark.req("WS-02", "AGENT-05")
async def test_a_client_approves_denies_cancels_and_tries_again(desk: Site, model: Player) -> None:
    model.says(calls(("refund", {"order": "7"})), "Paid.", calls(("refund", {"order": "8"})), "Not paid.")
    async with client(desk) as ann:
        await ann.send("message", text="Refund 7")
        await ann.send("approve", approval_id=(await ann.until("approval"))[-1]["approval_id"])
        paid = await ann.until("done")
        await ann.send("message", text="Refund 8")
        asked = (await ann.until("approval"))[-1]["approval_id"]
        await ann.send("deny", approval_id=asked, comment="Not that one.")
        unpaid = await ann.until("done")
        model.hold()
        await ann.send("message", text="Hello")
        run = (await ann.until("sent"))[-1]["run_id"]
        await reached(desk.engine, UUID(run), "running")
        await ann.send("cancel", run_id=run)
        cancelled = (await ann.until("done"))[-1]
        model.release()
        await ann.send("retry", run_id=run)
        again = (await ann.until("done"))[-1]

    assert [frame["text"] for frame in paid if frame["kind"] == "observation"] == ["paid back 7"]
    assert "Not that one." in next(frame["text"] for frame in unpaid if frame["kind"] == "observation")
    assert (cancelled["state"], cancelled["run_id"]) == ("cancelled", run)
    assert again["state"] == "done"


@pytest.mark.req("WS-02", "SAFE-03")
async def test_what_belongs_to_another_conversation_is_unknown(desk: Site, model: Player) -> None:
    model.says(calls(("refund", {"order": "7"})))
    ann, bob = [await make_key(desk.engine, name, scopes=["read", "write"]) for name in ("ann", "bob")]
    async with client(desk, key=ann, session_id="web-1") as owner, client(desk, key=bob) as stranger:
        await owner.send("message", text="Refund 7")
        asked = (await owner.until("approval"))[-1]
        for type, field in [
            ("approve", "approval_id"),
            ("deny", "approval_id"),
            ("cancel", "run_id"),
            ("retry", "run_id"),
        ]:
            await stranger.send(type, **{field: asked[field]})
            await stranger.send(type, **{field: str(uuid4())})

            assert [(await stranger.next())["code"] for _ in range(2)] == ["not_found", "not_found"]

    acme = await make_key(desk.engine, "ann", tenant="acme")
    url = address(desk, session_id="web-1", since=asked["cursor"])
    assert await refusal(url.replace("since=", "since=x"), {"Authorization": f"Bearer {bob}"}) == (400, "invalid_input")
    for key in (bob, acme):
        async with client(desk, key=key, session_id="web-1", since="0") as other:
            await other.send("ping")
            assert (await other.next())["kind"] == "pong"  # and nothing of what was said in the other's session
    assert (await desk.engine.agents.approvals.get(UUID(asked["approval_id"]))).state == "pending"


@pytest.mark.req("SAFE-03")
async def test_a_socket_is_refused_as_a_request_is(desk: Site) -> None:
    ann = {"Authorization": f"Bearer {await make_key(desk.engine, 'ann')}"}
    reader = {"Authorization": f"Bearer {await make_key(desk.engine, 'ann', scopes=['read'])}"}
    url = address(desk)

    assert await refusal(url) == (401, "unauthenticated")
    assert await refusal(url, {"Authorization": "Bearer hf_wrong"}) == (401, "unauthenticated")
    assert await refusal(url, reader) == (403, "forbidden")
    assert await refusal(url, {**ann, "Holdfast-User": "bob"}) == (403, "forbidden")
    assert await refusal(url, {**ann, "Origin": "http://evil.example"}) == (403, "forbidden")
    assert await refusal(url, {**ann, "Origin": "null"}) == (403, "forbidden")
    assert await refusal(address(desk, "nobody"), ann) == (404, "not_found")
    assert await refusal(url + "since=abc", ann) == (400, "invalid_input")
    assert await refusal(url, ann, subprotocols=[Subprotocol("mqtt")]) == (400, "invalid_input")
    assert await refusal(url.replace("/ws/support", "/api/chat"), ann) == (404, "not_found")
    async with desk.connect() as wire:
        reply = await wire.ask("GET", "/ws/support", headers={**UPGRADE, **ann, "Host": "evil.example"})
        assert (reply.status, reply.code) == (403, "forbidden")


@pytest.mark.req("SAFE-03", "WS-01")
async def test_a_browser_talks_with_its_cookie_from_our_own_pages_alone(desk: Site) -> None:
    link = await desk.engine.keys.create_link(await desk.engine.tenants.id_of("default"), "ann")
    await make_key(desk.engine)  # local access has ended
    cookie = {"Cookie": f"{COOKIE}={await desk.engine.keys.exchange_link(link)}"}
    own = {**cookie, "Origin": f"http://127.0.0.1:{desk.port}"}

    async with connect(address(desk, session_id="web-1"), additional_headers=own) as socket:
        await socket.send("Hello")
        assert await receive(socket) == "Done."

    for origin in ("http://evil.example", f"https://127.0.0.1:{desk.port}", "http://127.0.0.1:1"):
        assert await refusal(address(desk), {**cookie, "Origin": origin}) == (403, "forbidden")
    assert await refusal(address(desk), {**cookie, "Sec-Fetch-Site": "cross-site"}) == (403, "forbidden")


@pytest.mark.req("SAFE-03")
async def test_a_back_end_opens_sockets_for_many_users_with_one_key(desk: Site) -> None:
    key = await make_key(desk.engine, "shop", scopes=["read", "write", "act-as"])
    ann, bob = [{"Authorization": f"Bearer {key}", "Holdfast-User": name} for name in ("ann", "bob")]

    async with connect(address(desk, session_id="web-1"), additional_headers=ann) as socket:
        await socket.send("Hello")
        assert await receive(socket) == "Done."

    async with connect(address(desk, session_id="web-1"), additional_headers=bob) as socket:
        await socket.send("Hello")
        assert await receive(socket) == "Done."
    talks = [await desk.engine.conversations.find(session_id="web-1", user=name) for name in ("ann", "bob")]
    assert [talk and (talk.user, talk.last_seq) for talk in talks] == [("ann", 2), ("bob", 2)]


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize("who_speaks", ["client", "agent"])
async def test_a_socket_ends_with_the_key_that_opened_it(
    desk: Site, who_speaks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "RECHECK_SECONDS", 0)
    tenant = await desk.engine.tenants.id_of("default")
    made = await desk.engine.keys.create(tenant, "ann")
    async with client(desk, key=made.text, session_id="web-1") as ann:
        await desk.engine.keys.revoke(tenant, made.key.id)

        if who_speaks == "client":
            await ann.send("message", text="Hello")
        else:
            own = desk.engine.tenant(tenant)
            await own.agents.send("support", "Hello", user="ann", session_id="web-1")

        code, reason = await closed(ann.socket)

    assert code == 1008
    assert reason.startswith("the key is invalid")


@pytest.mark.req("WS-02")
async def test_a_socket_ends_when_its_conversation_was_removed_and_says_nothing_in_another(desk: Site) -> None:
    async with client(desk, session_id="web-1") as ann:
        await desk.engine.conversations.remove(UUID(ann.ready["conversation_id"]))

        await ann.send("message", text="Hello")
        code, reason = await closed(ann.socket)

    assert code == 1008
    assert reason.startswith("there is no conversation")
    assert await desk.engine.conversations.find(session_id="web-1") is None


async def test_a_message_too_many_is_refused_until_others_are_answered(
    desk: Site, model: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "MAX_UNANSWERED", 2)
    model.hold()
    async with client(desk) as ann:
        for number in range(3):
            await ann.send("message", text=f"Message {number}", key=f"m-{number}")
        refused = (await ann.until("refused"))[-1]
        model.release()
        await ann.until("done")
        await ann.until("done")
        await ann.send("message", text="Message 3")

        assert kinds(await ann.until("done"))[-1] == "done"

    assert (refused["code"], refused["key"]) == ("overloaded", "m-2")


async def test_a_frame_that_is_too_large_closes_the_socket_and_a_large_one_does_not(desk: Site) -> None:
    async with client(desk) as ann:
        await ann.send("message", text="é" * 500_001)
        refused = await ann.next()
        await ann.socket.send("a" * 4_000_000)

        assert (await closed(ann.socket))[0] == 1009

    assert (refused["kind"], refused["code"]) == ("refused", "too_large")


@pytest.mark.req("TALK-08")
async def test_a_thousand_sockets_are_one_reader(desk: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    subscribed: list[list[str]] = []
    subscribe = PostgresLog.subscribe

    def counted(log: PostgresLog, topics: list[str], **options: Any) -> Any:
        subscribed.append(list(topics))
        return subscribe(log, topics, **options)

    monkeypatch.setattr(PostgresLog, "subscribe", counted)
    async with AsyncExitStack() as stack:
        opened: list[Client] = []
        for number in range(0, 1000, 20):
            opened += await asyncio.gather(
                *(stack.enter_async_context(client(desk, session_id=f"web-{number + each}")) for each in range(20))
            )
        for ann in opened[::100]:
            await ann.send("message", text="Hello")
        ends = [kinds(await ann.until("done"))[-1] for ann in opened[::100]]

    assert ends == ["done"] * 10
    assert subscribed == [], "the process that serves the agent reads its topic already"
