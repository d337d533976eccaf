"""Those who watch: everything is told in order, once, from any cursor, in any process, however slowly they read."""

import asyncio
import random
from collections.abc import Callable, Iterable
from uuid import UUID

import pytest

from holdfast import App
from holdfast.agents import Event, broadcast, journal, watch
from holdfast.conversations import NodeInput
from holdfast.core.errors import InvalidInput, NotFound
from holdfast.core.ids import uuid7
from holdfast.engine import Engine
from holdfast.postgres.database import Database, Row
from tests.agents.stage import PATIENCE, Player, Stage, answer, calls, kinds, of, reached, told, until


def rest(events: Iterable[Event]) -> list[tuple[str, object, object, str]]:
    """What stays told when a run is over: pieces of text have become answers."""
    return [(event.kind, event.node_id, event.call_id, event.text) for event in events if event.kind != "token"]


def ends(number: int) -> Callable[[Event], bool]:
    """Whether so many runs have ended."""
    left = iter(range(number - 1, -1, -1))
    return lambda event: event.kind in ("done", "error") and next(left) == 0


@pytest.mark.req("WS-02", "AGENT-01")
async def test_a_watch_goes_on_after_every_cursor_of_what_was_seen(stage: Stage, app: App, model: Player) -> None:
    engine, other = await stage.serve(app), await stage.open()
    model.says(
        calls(("track", {"parcel": "1"}), ("track", {"parcel": "2"}), text="I look."), {"text": "Here.", "chunks": 3}
    )
    sent = await engine.agents.send("support", "Where?", user="ann", session_id="web-1")
    async with engine.agents.watch(sent.conversation, "support") as events:
        seen = await until(events, ends(1))
        await told(engine, "support", "Thanks!", user="ann", session_id="web-1")
        seen += await until(events, ends(1))

    for place, event in enumerate(seen[:-1]):
        async with other.agents.watch(sent.conversation, "support", since=event.cursor) as again:
            found = await until(again, lambda each: each.cursor == seen[-1].cursor)

        assert sorted(map(str, rest(found))) == sorted(map(str, rest(seen[place + 1 :])))
        assert [each.kind for each in found if each.kind == "token"] == []


@pytest.mark.req("WS-02", "STM-06")
async def test_a_watch_in_another_process_goes_on_in_the_middle_of_an_answer(
    stage: Stage, app: App, model: Player
) -> None:
    engine, other = await stage.serve(app), await stage.open()
    model.says({"text": "one two three four five six", "chunks": 9})
    model.hold(after=6)
    sent = await engine.agents.send("support", "Count!", user="ann")
    async with engine.agents.watch(sent.conversation, "support") as events:
        seen = await until(events, lambda event: event.text == "our")
    tokens = of(seen, "token")

    for place, token in enumerate(tokens[:-1]):
        async with other.agents.watch(sent.conversation, "support", since=token.cursor) as again:
            found = await until(again, lambda each: each.cursor.split(".")[1] >= tokens[-1].cursor.split(".")[1])

        assert "".join(each.text for each in found) == "".join(each.text for each in tokens[place + 1 :])
    async with other.agents.watch(sent.conversation, "support", since=tokens[2].cursor) as again:
        model.release()
        last = await until(again, ends(1))
    assert answer(last) == "one two three four five six"
    assert kinds(last)[-2:] == ["answer", "done"]


@pytest.mark.req("WS-02", "TALK-08")
async def test_what_another_process_does_is_told_in_order(stage: Stage, app: App, model: Player) -> None:
    engine, other = await stage.serve(app), await stage.open()
    model.says(
        *[calls(("track", {"parcel": "1"}), text="I look."), {"text": "It is there.", "chunks": 3}] * 3,
    )
    talk = await other.agents.session("support", user="ann", session_id="web-1")

    async with other.agents.watch(talk.id, "support") as events:
        for _ in range(3):
            await engine.agents.send("support", "Where?", user="ann", session_id="web-1")
        seen = await until(events, ends(3))

    nodes = [event.seq for event in seen if event.seq is not None and event.kind != "action"]
    assert nodes == sorted(set(nodes))
    for run in {event.run_id for event in seen if event.run_id is not None}:
        of_run = [event for event in seen if event.run_id == run and event.kind != "token"]
        assert kinds(of_run) == ["thought", "action", "observation", "answer", "done"]


@pytest.mark.req("WS-02")
async def test_who_comes_in_while_an_answer_streams_misses_and_doubles_nothing(
    stage: Stage, app: App, model: Player
) -> None:
    engine = await stage.serve(app)
    text = "".join(f"{number} " for number in range(400))
    model.says({"text": text, "chunks": 200, "delay": 0.002})
    sent = await engine.agents.send("support", "Count!", user="ann")

    async def watched() -> list[Event]:
        async with engine.agents.watch(sent.conversation, "support") as events:
            return await until(events, ends(1))

    watchers: list[asyncio.Task[list[Event]]] = []
    async with engine.agents.watch(sent.conversation, "support") as events:
        async with asyncio.timeout(PATIENCE):
            async for event in events:
                if event.kind == "token" and len(watchers) < 20:
                    watchers.append(asyncio.create_task(watched()))
                if event.kind == "done":
                    break
    seen = [await watcher for watcher in watchers]

    for each in seen:
        assert [event.kind for event in each if event.kind != "token"] == ["message", "answer", "done"]
        streamed = "".join(event.text for event in of(each, "token"))
        assert text.startswith(streamed)
    assert any(len("".join(event.text for event in of(each, "token"))) == len(text) for each in seen)


@pytest.mark.req("WS-02", "TALK-08")
async def test_a_slow_reader_loses_and_doubles_nothing(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app, agents_watch_bytes=300)
    talk = await engine.agents.session("support", user="ann", session_id="web-1")
    async with engine.agents.watch(talk.id, "support") as slow:
        for number in range(5):
            model.says(
                calls(("track", {"parcel": str(number)}), text="I look. " * 50), {"text": "There. " * 50, "chunks": 9}
            )
            await told(engine, "support", f"Where is {number}?", user="ann", session_id="web-1")

        seen = await until(slow, ends(5))

    nodes = [event for event in seen if event.seq is not None]
    assert [event.kind for event in nodes] == ["message", "thought", "action", "observation", "answer"] * 5
    assert len({event.cursor for event in seen}) == len(seen)
    assert [event.state for event in of(seen, "done")] == ["done"] * 5


@pytest.mark.req("WS-02")
async def test_more_than_may_wait_is_read_page_by_page(stage: Stage, app: App) -> None:
    engine = await stage.serve(app, agents_watch_bytes=10_000)
    talk = await engine.conversations.create(user="ann", agent="other")
    for number in range(30):
        await engine.conversations.append(talk.id, f"{number} " + "x" * 2000, context="text:user:ann")

    async with engine.agents.watch(talk.id, None) as events:
        seen = await until(events, lambda event: event.seq == 30)

    assert [event.seq for event in seen] == list(range(1, 31))


@pytest.mark.req("WS-02")
async def test_edits_and_deletes_are_told_while_watching_and_afterwards(stage: Stage, app: App) -> None:
    engine = await stage.serve(app)
    events = await told(engine, "support", "Hello!", user="ann", session_id="web-1")
    talk = await engine.conversations.find(session_id="web-1") or pytest.fail("no session")
    first, second = await engine.conversations.since(talk.id, 0)

    async with engine.agents.watch(talk.id, "support", since=events[-1].cursor) as watch:
        await engine.conversations.edit(first.id, "Hello, friend!", version=1)
        await engine.conversations.delete(second.id, version=1)
        live = await until(watch, lambda event: event.kind == "delete")
    async with engine.agents.watch(talk.id, "support", since=events[-1].cursor) as watch:
        later = await until(watch, lambda event: event.kind == "delete")

    assert [(each.kind, each.node_id, each.text, each.version) for each in live] == [
        ("message", first.id, "Hello, friend!", 2), ("delete", second.id, "", 2),
    ]  # fmt: skip
    assert later == live


@pytest.mark.req("TALK-08")
async def test_many_who_watch_are_one_reader_of_the_topic(stage: Stage, app: App) -> None:
    engine = await stage.serve(app)
    sent = [await engine.agents.send("support", "Hello!", user=f"u{n}", session_id=f"s{n}") for n in range(10)]
    watching = asyncio.Barrier(101)

    async def watched(number: int) -> list[Event]:
        async with engine.agents.watch(sent[number % 10].conversation, "support") as events:
            await until(events, ends(1))
            await watching.wait()
            return await until(events, ends(1))

    watchers = [asyncio.create_task(watched(number)) for number in range(100)]
    async with asyncio.timeout(PATIENCE):
        await watching.wait()
    readers = [task for task in asyncio.all_tasks() if task.get_name() == "watching llm-support"]
    for number in range(10):
        await engine.agents.send("support", f"I am {number}.", user=f"u{number}", session_id=f"s{number}")
    seen = [await watcher for watcher in watchers]

    assert len(readers) == 1
    for number, events in enumerate(seen):
        assert [event.text for event in of(events, "message")] == [f"I am {number % 10}."]
        assert kinds(event for event in events if event.kind != "token") == ["message", "answer", "done"]


@pytest.mark.req("WS-02", "AGENT-01")
async def test_the_end_of_a_run_that_was_cancelled_in_the_queue_is_told_once(
    stage: Stage, app: App, model: Player
) -> None:
    engine, other = await stage.serve(app), await stage.open()
    model.hold()
    first = await engine.agents.send("support", "One.", user="ann", session_id="web-1")
    second = await engine.agents.send("support", "Two.", user="ann", session_id="web-1")
    third = await engine.agents.send("support", "Three.", user="ann", session_id="web-1")
    async with (
        engine.agents.watch(first.conversation, "support") as here,
        other.agents.watch(first.conversation, "support") as there,
    ):
        await engine.agents.cancel(second.run_id)
        model.release()
        seen = [await until(watch, ends(3)) for watch in (here, there)]

    for events in seen:
        assert {event.run_id: event.state for event in of(events, "done")} == {
            first.run_id: "done", second.run_id: "cancelled", third.run_id: "done",
        }  # fmt: skip
        assert len(of(events, "answer")) == 2


@pytest.mark.req("WS-02", "STM-06")
async def test_an_answer_that_another_process_begins_anew_is_not_read_doubled(
    stage: Stage, app: App, model: Player
) -> None:
    first, second = await stage.open(), await stage.open()
    model.says({"text": "one two three four", "chunks": 6}, {"text": "one two three four", "chunks": 6})
    model.hold(after=3)
    async with first.serving(app):
        sent = await first.agents.send("support", "Count!", user="ann")
        async with second.agents.watch(sent.conversation, "support") as events:
            before = await until(events, lambda event: event.kind == "token")
            cursor = before[-1].cursor
    await reached(first, sent.run_id, "queued")

    async with second.agents.watch(sent.conversation, "support", since=cursor) as events:
        await stage.serving(second, app)
        model.hold(after=3)
        tokens = await until(events, lambda event: event.kind == "token" and not event.reset and bool(event.text))
        model.release()
        after = await until(events, ends(1))

    pieces = of([*before, *tokens, *after], "token")
    last = max(place for place, piece in enumerate(pieces) if piece.reset)
    assert "one two three four".startswith("".join(piece.text for piece in pieces[last:]))
    assert answer(after) == "one two three four"


@pytest.mark.req("WS-02")
async def test_a_cursor_that_cannot_be_read_and_a_conversation_that_is_not_there_are_refused(
    stage: Stage, app: App
) -> None:
    engine = await stage.serve(app)

    for cursor in ("x", "1.2.3.4", "-1.0", "1.", "9" * 30):
        with pytest.raises(InvalidInput, match="cannot be read"):
            async with engine.agents.watch(uuid7(), "support", since=cursor):
                pass
    with pytest.raises(NotFound):
        async with engine.agents.watch(uuid7(), "support") as events:
            await anext(events)


@pytest.mark.req("WS-02", "TALK-08", "TALK-03")
async def test_whatever_one_puts_into_a_node_or_a_record_everyone_goes_on_hearing(stage: Stage, app: App) -> None:
    engine, other = await stage.open(), await stage.open()
    await engine.definitions.declare(app.agents.values())
    odd, plain = [await engine.agents.session("support", user=name, session_id=name) for name in ("eve", "ann")]
    async with other.agents.watch(odd.id, "support") as hers, other.agents.watch(plain.id, "support") as anns:
        await engine.conversations.append(odd.id, "?", context="text:user:eve", payload={"run": "not-a-uuid"})
        [record] = [each async for each in engine.log.read("llm-support")]
        headers = {**record.headers, "holdfast-sequence": "9" * 5000}
        await engine.log.publish("llm-support", key=str(plain.id), value=record.value, headers=headers)
        first = await until(hers, lambda event: event.text == "?")
        await engine.conversations.append(plain.id, "Hello?", context="text:user:ann")
        heard = await until(anns, lambda event: event.text == "Hello?")
    async with other.agents.watch(odd.id, "support") as again:
        later = await until(again, lambda event: event.text == "?")

    assert [event.run_id for event in first] == [None]
    assert kinds(heard) == ["message"]
    assert later == first


@pytest.mark.req("WS-02")
async def test_all_that_one_deletion_takes_is_told_at_once_and_afterwards(stage: Stage, app: App) -> None:
    engine = await stage.serve(app)
    talk = await engine.agents.session("support", user="ann", session_id="web-1")
    top = await engine.conversations.append(talk.id, "top", context="text:agent:support")
    below = await engine.conversations.append(talk.id, "below", context="text:agent:support", parent=top.id)
    async with engine.agents.watch(talk.id, "support") as events:
        seen = await until(events, lambda event: event.text == "below")

        await engine.conversations.delete(top.id, version=1)
        live = await until(events, lambda event: event.node_id == below.id)
    async with engine.agents.watch(talk.id, "support", since=seen[-1].cursor) as events:
        later = await until(events, lambda event: event.node_id == below.id)

    assert [(event.kind, event.node_id) for event in live] == [("delete", top.id), ("delete", below.id)]
    assert later == live


@pytest.mark.req("WS-02")
async def test_a_change_of_more_nodes_than_a_page_has_is_told_whole_from_every_cursor(
    stage: Stage, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "PAGE", 5)
    engine = await stage.serve(app)
    talk = await engine.agents.session("support", user="ann", session_id="web-1")
    drafts = [NodeInput(content=str(number), context="text:agent:support") for number in range(12)]
    await engine.conversations.append_all(talk.id, drafts)
    async with engine.agents.watch(talk.id, "support") as events:
        await until(events, lambda event: event.text == "11")
        await engine.conversations.clear(talk.id)
        await engine.conversations.append(talk.id, "anew", context="text:agent:support")

        seen = await until(events, lambda event: event.text == "anew")

    assert [(event.kind, event.seq) for event in seen] == [
        *[("delete", number) for number in range(1, 13)],
        ("answer", 13),
    ]
    for place, event in enumerate(seen[:-1]):
        async with engine.agents.watch(talk.id, "support", since=event.cursor) as events:
            assert await until(events, lambda event: event.text == "anew") == seen[place + 1 :]


@pytest.mark.req("WS-02", "AGENT-05")
async def test_what_lies_beside_nodes_is_told_between_them_afterwards(stage: Stage, model: Player) -> None:
    app = App()

    @app.tool
    async def refund(order: str) -> str:
        """Pay money back."""
        return f"refunded {order}"

    app.agent("support", tools=[refund], approve=["refund"])
    engine, other = await stage.serve(app), await stage.open()
    model.says(calls(("refund", {"order": "7"})), "You have it back.", "Goodbye.")
    sent = await engine.agents.send("support", "Give it back!", user="ann", session_id="web-1")
    await reached(engine, sent.run_id, "waiting")
    [approval] = await engine.agents.approvals.pending()
    await engine.agents.decide(approval.id, approve=True, by="boss")
    await reached(engine, sent.run_id, "done")
    await told(engine, "support", "Thanks!", user="ann", session_id="web-1")

    async with other.agents.watch(sent.conversation, "support") as events:
        seen = await until(events, ends(2))

    assert kinds(seen) == [
        "message", "action", "approval", "decision", "observation", "answer", "done", "message", "answer", "done",
    ]  # fmt: skip
    for place, event in enumerate(seen[:-1]):
        async with other.agents.watch(sent.conversation, "support", since=event.cursor) as again:
            assert await until(again, lambda each: each.cursor == seen[-1].cursor) == seen[place + 1 :]


@pytest.mark.req("WS-02", "AGENT-01", "STM-06")
async def test_that_a_run_is_tried_again_is_heard_in_another_process(stage: Stage, app: App, model: Player) -> None:
    engine, other = await stage.serve(app), await stage.open()
    model.says(*[{"fail": {"status": 400, "retryable": False}}] * 2)
    sent = await engine.agents.send("support", "Where?", user="ann", session_id="web-1")

    async with other.agents.watch(sent.conversation, "support") as events:
        first = await until(events, ends(1))
        run = await engine.agents.retry(sent.run_id)
        second = await until(events, ends(1))

    assert [event.run_id for event in of(first, "error")] == [sent.run_id]
    assert [(event.kind, event.run_id) for event in second] == [("error", run.id)]


class HeldAnswers:
    """Holds the answers of one statement back after they were read, until they are released."""

    def __init__(self, statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read = asyncio.Event()
        self._released = asyncio.Event()
        ask = Database.all

        async def hold(database: Database, text: str, *args: object) -> list[Row]:
            rows = await ask(database, text, *args)
            if text == statement and rows and not self._released.is_set():
                self.read.set()
                await self._released.wait()
            return rows

        monkeypatch.setattr(Database, "all", hold)

    def release(self) -> None:
        """Answer."""
        self._released.set()


@pytest.mark.req("WS-02", "STM-06")
async def test_text_that_was_read_before_its_node_came_is_not_told_after_it(
    stage: Stage, app: App, model: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, other = await stage.serve(app), await stage.open()
    model.says(calls(("track", {"parcel": "1"}), text="I look. " * 9, chunks=5))
    model.hold()
    sent = await engine.agents.send("support", "Where?", user="ann", session_id="web-1")
    async with other.agents.watch(sent.conversation, "support") as events:
        seen = await until(events, lambda event: event.kind == "message")
        polled = HeldAnswers(broadcast.sql("deltas"), monkeypatch)
        model.release()
        model.hold(after=2)
        async with asyncio.timeout(PATIENCE):
            await polled.read.wait()
        model.release()
        seen += await until(events, lambda event: event.kind == "action")
        polled.release()
        after = await until(events, ends(1))

    assert misread(seen) == []
    assert [event for event in of(after, "token") if event.text.startswith("I look.")] == []


@pytest.mark.req("WS-02", "STM-06")
async def test_text_whose_node_is_stored_is_not_told_to_one_who_has_read_the_node(
    stage: Stage, app: App, model: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await stage.serve(app)
    model.says(calls(("track", {"parcel": "1"}), text="I look. " * 9, chunks=5))
    stored = HeldAnswers(journal.sql("append_in_run"), monkeypatch)
    sent = await engine.agents.send("support", "Where?", user="ann", session_id="web-1")
    async with engine.agents.watch(sent.conversation, "support") as events:
        async with asyncio.timeout(PATIENCE):
            await stored.read.wait()
        seen = await until(events, lambda event: event.kind == "action")
        while (event := await events.next_now()) is not None:
            seen.append(event)
        stored.release()
        seen += await until(events, ends(1))

    assert misread(seen) == []


class Wanderer:
    """One who watches now here, now there, and reads slowly or fast: from its cursor on, each time."""

    def __init__(self, engines: list[Engine], conversation: UUID, chance: random.Random) -> None:
        self._engines = engines
        self._conversation = conversation
        self._chance = chance
        self.seen: list[Event] = []

    async def watch(self, runs: int) -> None:
        """Watch until so many runs have ended."""
        cursor: str | None = None
        while len([event for event in self.seen if event.kind in ("done", "error")]) < runs:
            engine = self._chance.choice(self._engines)
            async with engine.agents.watch(self._conversation, "support", since=cursor) as events:
                for _ in range(self._chance.randint(1, 12)):
                    event = await anext(events)
                    self.seen.append(event)
                    cursor = event.cursor
                    if self._chance.random() < 0.1:
                        await asyncio.sleep(0.02)
                    if event.kind in ("done", "error"):
                        break


@pytest.mark.req("WS-02", "STM-06", "AGENT-01")
@pytest.mark.parametrize("seed", range(4))
async def test_whatever_happens_everyone_hears_all_of_it_once_and_in_order(
    stage: Stage, app: App, model: Player, seed: int
) -> None:
    chance = random.Random(seed)
    engines = [await stage.serve(app, agents_watch_bytes=chance.choice([300, 5000, 10**6])) for _ in range(2)]
    talk = await engines[0].agents.session("support", user="ann", session_id="web-1")
    parts = [
        calls(("track", {"parcel": "1"}), text="I look. " * 9, chunks=5),
        {"text": "It is there. " * 20, "chunks": 40, "delay": 0.003},
        {"fail": {"status": 400, "retryable": False}},
        calls(("track", {}), ("nothing", {}), chunks=2),
    ]
    model.says(*chance.choices(parts, weights=[3, 6, 1, 2], k=200))
    wanderers = [Wanderer(engines, talk.id, chance) for _ in range(4)]
    watching = [asyncio.create_task(each.watch(15)) for each in wanderers]
    sent: list[UUID] = []
    for number in range(15):
        busy = "interrupt" if chance.random() < 0.15 else "enqueue"
        engine = chance.choice(engines)
        sent.append(
            (await engine.agents.send("support", f"{number}?", user="ann", session_id="web-1", busy=busy)).run_id
        )
        if chance.random() < 0.2:
            await engine.agents.cancel(chance.choice(sent))
        await asyncio.sleep(chance.random() * 0.3)
    async with asyncio.timeout(60):
        await asyncio.gather(*watching)

    nodes = await engines[0].conversations.since(talk.id, 0)
    for wanderer in wanderers:
        spoken = [event for event in wanderer.seen if event.node_id is not None and event.seq is not None]
        assert list(dict.fromkeys(event.node_id for event in spoken)) == [
            node.id for node in nodes if node.context.startswith("text:")
        ]
        assert len({(event.node_id, event.kind, event.call_id) for event in spoken}) == len(spoken)
        ended = [event.run_id for event in wanderer.seen if event.kind in ("done", "error")]
        assert sorted(map(str, ended)) == sorted(map(str, sent))
        assert misread(wanderer.seen) == []


def misread(events: list[Event]) -> list[tuple[str, str, str, bool]]:
    """Where pieces of text were no beginning of what was said in the end; those before it, with it."""
    begins, pieces = 0, ""
    for place, event in enumerate(events):
        if event.kind == "token":
            pieces = event.text if event.reset else pieces + event.text
            continue
        said = event.text if event.kind in ("thought", "answer") else ""
        if event.kind not in ("message", "done", "error") and not said.startswith(pieces):
            return [(each.kind, each.cursor, each.text, each.reset) for each in events[begins : place + 1]]
        if event.kind not in ("message", "thinking"):
            begins, pieces = place, ""
    return []
