"""Messages that arrive while a turn is under way, and messages whose turn failed: each is acted on once."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest

from holdfast import App
from holdfast.core.errors import InvalidInput
from holdfast.llm import ModelRequest
from holdfast.llm.scripted import Given
from tests.agents.stage import PATIENCE, Player, Stage, answer, calls, ended, kinds, nodes, of, reached, told

Talk = list[tuple[str, str]]


class Shop:
    """A shop whose `track` takes until it is let go, and whose `pay` counts what was paid."""

    def __init__(self) -> None:
        self.tracking = asyncio.Event()
        self.go_on = asyncio.Event()
        self.paid: list[int] = []
        self.app = App()

        @self.app.tool(idempotent=True)
        async def track(parcel: str) -> str:
            """Where a parcel is."""
            self.tracking.set()
            await self.go_on.wait()
            return f"{parcel} is in Cologne"

        @self.app.tool
        async def pay(amount: int) -> str:
            """Pay an amount."""
            self.paid.append(amount)
            return f"paid {amount}"

        self.app.agent("support", instructions="Help.", tools=[track, pay])


@pytest.fixture
def shop() -> Shop:
    """The shop."""
    return Shop()


def shown(request: ModelRequest) -> Talk:
    """What a model was shown beside the system message; calls by the names of their tools."""
    said = [message for message in request.messages if message.role != "system"]
    return [(each.role, each.content or ", ".join(call.name for call in each.calls)) for each in said]


def obey(request: ModelRequest) -> Given:
    """Do what the last user message asks for, as a model does: track or pay first, then answer."""
    talk = shown(request)
    place = max(number for number, (role, _) in enumerate(talk) if role == "user")
    asked, has_acted = talk[place][1], any(role == "tool" for role, _ in talk[place:])
    if "pay" in asked and not has_acted:
        return calls(("pay", {"amount": 50}))
    if "Where" in asked and not has_acted:
        return calls(("track", {"parcel": "P1"}))
    return f"Answer to {asked!r}"


def extends(requests: Sequence[ModelRequest]) -> bool:
    """Whether each request begins with all messages of the one before."""
    return all(
        list(later.messages[: len(former.messages)]) == list(former.messages) for former, later in pairwise(requests)
    )


@pytest.mark.req("AGENT-07", "CONV-07")
async def test_a_message_that_arrives_during_a_tool_is_acted_on_once(stage: Stage, shop: Shop, model: Player) -> None:
    engine = await stage.serve(shop.app)
    model.says(*[obey] * 6)
    first = await engine.agents.send("support", "Where is parcel P1?", user="ann", session_id="web-1")
    async with asyncio.timeout(PATIENCE):
        await shop.tracking.wait()
    second = await engine.agents.send("support", "pay 50", user="ann", session_id="web-1")
    shop.go_on.set()

    await ended(engine, first)
    events = await ended(engine, second)

    assert shop.paid == [50]
    assert [shown(request)[-1] for request in model.requests] == [
        ("user", "Where is parcel P1?"),
        ("tool", "P1 is in Cologne"),
        ("user", "pay 50"),
        ("tool", "paid 50"),
    ]
    assert [event.text for event in of(events, "answer")] == ["Answer to 'Where is parcel P1?'", "Answer to 'pay 50'"]


@pytest.mark.req("AGENT-07")
async def test_the_prompt_of_each_step_extends_the_one_before(stage: Stage, shop: Shop, model: Player) -> None:
    engine = await stage.serve(shop.app)
    shop.go_on.set()
    model.says("One, two, three.", *[obey] * 3)
    model.hold(after=1)
    await engine.agents.send("support", "Count slowly", user="ann", session_id="web-1")
    second = await engine.agents.send("support", "Where is parcel P1?", user="ann", session_id="web-1")
    model.release()

    await ended(engine, second)

    _, step, next_step = model.requests
    history = [("user", "Count slowly"), ("assistant", "One, two, three."), ("user", "Where is parcel P1?")]
    assert shown(step) == history
    assert shown(next_step) == [*history, ("assistant", "track"), ("tool", "P1 is in Cologne")]
    assert extends([step, next_step])


@pytest.mark.req("AGENT-07")
@pytest.mark.parametrize("status", [400, 500])
async def test_a_message_that_the_provider_refused_is_not_in_the_next_request(
    stage: Stage, shop: Shop, model: Player, status: int
) -> None:
    engine = await stage.serve(shop.app, llm_attempts=1)
    model.says({"fail": {"status": status, "message": "no"}}, "Hello!", "Now it works.")
    failed = await told(engine, "support", "fail now", user="ann", session_id="web-1")

    again = await told(engine, "support", "hello again", user="ann", session_id="web-1")
    retried = await engine.agents.retry(failed[-1].run_id or pytest.fail("no run"))
    await ended(engine, retried)
    await told(engine, "support", "And now?", user="ann", session_id="web-1")

    assert (kinds(failed)[-1], answer(again)) == ("error", "Hello!")
    _, after, retry, last = model.requests
    history = [("user", "hello again"), ("assistant", "Hello!")]
    assert shown(after) == history[:1]
    assert "1 earlier message was not answered" in after.messages[0].content
    assert shown(retry) == [*history, ("user", "fail now")], "a retry shows it again"
    assert shown(last) == [*shown(retry), ("assistant", "Now it works."), ("user", "And now?")]


@pytest.mark.req("AGENT-07")
async def test_a_message_that_was_stopped_is_shown_apart_from_the_next(stage: Stage, shop: Shop, model: Player) -> None:
    engine = await stage.serve(shop.app)
    model.hold()
    first = await engine.agents.send("support", "Book a table for two", user="ann", session_id="web-1")
    await reached(engine, first.run_id, "running")
    second = await engine.agents.send("support", "Make it three", user="ann", session_id="web-1", busy="interrupt")
    await reached(engine, first.run_id, "cancelled")
    model.release()

    await ended(engine, second)

    assert shown(model.requests[-1]) == [
        ("user", "Book a table for two"),
        ("assistant", "[Stopped before an answer.]"),
        ("user", "Make it three"),
    ]


@pytest.mark.req("CONV-07", "AGENT-07")
async def test_merged_messages_are_answered_by_one_run_once(stage: Stage, shop: Shop, model: Player) -> None:
    engine = await stage.serve(shop.app)
    model.says(*[obey] * 6)
    first = await engine.agents.send("support", "Where is parcel P1?", user="ann", session_id="web-1", busy="merge")
    async with asyncio.timeout(PATIENCE):
        await shop.tracking.wait()
    more = [
        await engine.agents.send("support", text, user="ann", session_id="web-1", busy="merge", key=text)
        for text in ("pay 50", "and say thanks", "pay 50")
    ]
    shop.go_on.set()
    events = await ended(engine, more[-1])

    assert len({sent.run_id for sent in more}) == 1
    assert more[0].run_id != first.run_id
    assert (more[2].node_id, more[2].is_new) == (more[0].node_id, False), "the same key is said once"
    assert shop.paid == [50]
    assert shown(model.requests[2])[-1] == ("user", "pay 50\n\nand say thanks")
    assert len(of(events, "answer")) == 2
    run = await engine.agents.runs.get(more[0].run_id)
    said = await nodes(engine, first.conversation)
    assert (run.trigger, list(run.triggers)) == (more[0].node_id, [more[0].seq, more[1].seq])
    assert said[-1].id == run.answer


@pytest.mark.req("AGENT-07")
async def test_what_others_change_meanwhile_changes_no_step_also_after_a_crash(
    stage: Stage, shop: Shop, model: Player
) -> None:
    engine = await stage.open()
    other = await stage.open()
    model.says("Welcome.", *[obey] * 3)
    async with engine.serving(shop.app):
        hello = await engine.agents.send("support", "Hello", user="ann", session_id="web-1")
        await ended(engine, hello)
        sent = await engine.agents.send("support", "Where is parcel P1?", user="ann", session_id="web-1")
        async with asyncio.timeout(PATIENCE):
            await shop.tracking.wait()
        await other.conversations.edit(hello.node_id, "Good evening", version=1)
        await other.conversations.append(hello.conversation, "Me too!", context="text:user:bob")
        await other.notes.edit(user="ann", agent="support", content="Is in a hurry.")
    shop.go_on.set()
    async with engine.serving(shop.app):  # it takes the run up as it was left
        await ended(engine, sent)
        run = await reached(engine, sent.run_id, "done")

    step, next_step = model.requests[1:3]
    assert run.claims == 2
    assert shown(step) == [("user", "Hello"), ("assistant", "Welcome."), ("user", "Where is parcel P1?")]
    assert extends([step, next_step])
    assert shown(next_step)[-1] == ("tool", "P1 is in Cologne")


@pytest.mark.req("AGENT-07")
async def test_a_message_that_is_deleted_before_its_run_begins_is_not_answered(
    stage: Stage, shop: Shop, model: Player
) -> None:
    engine = await stage.serve(shop.app)
    model.hold()
    first = await engine.agents.send("support", "One", user="ann", session_id="web-1")
    second = await engine.agents.send("support", "pay 50", user="ann", session_id="web-1")

    await engine.conversations.delete(second.node_id, version=1)
    model.release()
    await ended(engine, first)
    run = await reached(engine, second.run_id, "cancelled", "done", "failed")

    assert (run.state, len(model.requests)) == ("cancelled", 1)
    with pytest.raises(InvalidInput, match="its message was deleted"):
        await engine.agents.retry(second.run_id)


@pytest.mark.req("AGENT-07", "CONV-07")
async def test_a_message_that_a_stranger_wrote_before_is_answered_with_the_next(
    stage: Stage, shop: Shop, model: Player
) -> None:
    engine = await stage.open()
    await engine.agents.definitions.put("support", instructions="Help.")
    talk = await engine.agents.session("support", user="ann", session_id="web-1")
    written = await engine.conversations.append(talk.id, "pay 50", context="text:user:ann", key="by hand")
    sent = await engine.agents.send("support", "Thank you", user="ann", session_id="web-1")
    repeated = await engine.agents.send("support", "pay 50", user="ann", session_id="web-1", key="by hand")

    model.says(*[obey] * 4)
    await stage.serving(engine, shop.app)
    await ended(engine, sent)
    (run,) = await engine.agents.runs.list(conversation=talk.id)

    assert (repeated.node_id, repeated.run_id, run.id) == (written.id, sent.run_id, sent.run_id)
    assert shown(model.requests[0]) == [("user", "pay 50\n\nThank you")]
    assert shop.paid == [50]


@pytest.mark.req("CONV-07")
async def test_merged_messages_are_cancelled_and_retried_together(stage: Stage, shop: Shop, model: Player) -> None:
    engine = await stage.serve(shop.app)
    model.hold()
    await engine.agents.send("support", "One", user="ann", session_id="web-1")
    two, three = [
        await engine.agents.send("support", text, user="ann", session_id="web-1", busy="merge")
        for text in ("Two", "Three")
    ]
    other = await engine.agents.send("support", "Four", user="ann", session_id="web-1")
    fifth = await engine.agents.send("support", "Five", user="ann", session_id="web-1", busy="merge")

    await engine.agents.cancel(three.run_id)
    model.release()
    await ended(engine, fifth)
    retried = await engine.agents.retry(two.run_id)
    await ended(engine, retried)

    assert len({two.run_id, other.run_id, fifth.run_id}) == 3, "an enqueued message has a run of its own"
    stopped = ("user", "Two\n\nThree"), ("assistant", "[Stopped before an answer.]")
    assert shown(model.requests[1])[2:4] == list(stopped)
    assert list(retried.triggers) == [two.seq, three.seq]
    assert shown(model.requests[-1])[-1] == ("user", "Two\n\nThree")
