"""What every model promises: behind OpenAI's and Anthropic's interface, scripted, and offline."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from holdfast.core.settings import LlmSettings
from holdfast.llm import Caller, CallPiece, ChatMessage, Model, Piece, ScriptedModel, Stop, TextPiece
from holdfast.llm.endpoint import Connections
from holdfast.llm.offline import OfflineModel
from holdfast.llm.providers import open_model
from tests.llm.asking import called, saying, shown
from tests.llm.wires import Sent, Wire, recorded

pytestmark = pytest.mark.req("AGENT-03")

ASKED = {"text": "Hello", "one_call": "Where is my parcel AB-123?", "two_calls": "Where are my parcels AB-123, CD-456?"}
CALLS = [{"name": "track", "arguments": {"parcel": parcel}} for parcel in ("AB-123", "CD-456")]
SCRIPT = {
    "text": {"text": "Grüße aus 北京 👋", "chunks": 3},
    "one_call": {"calls": CALLS[:1], "chunks": 3},
    "two_calls": {"calls": CALLS},
}


@dataclass(frozen=True)
class Subject:
    """A model, and how to have it answer with text, one call or two."""

    model: Model
    answer_with: Callable[[str], None]
    hang: Callable[[], None] = lambda: None
    left: asyncio.Event | None = None


@asynccontextmanager
async def remote(kind: str) -> AsyncGenerator[Subject]:
    wire, connections = Wire(), Connections()
    async with wire.serving():
        name = f"{kind}:m"
        model = open_model(name, LlmSettings.model_validate({"model": name, "base_url": wire.url}), connections)
        text = recorded(f"{kind}_text")
        yield Subject(
            model,
            answer_with=lambda answer: wire.will_send(recorded(f"{kind}_{answer}")),
            hang=lambda: wire.will_send(Sent([text[: text.index("Grüße".encode()) + 200]], hangs=True)),
            left=wire.left,
        )
        await connections.close()


def scripted() -> Subject:
    answer = {"now": SCRIPT["text"]}
    model = ScriptedModel(lambda _: answer["now"])
    return Subject(
        model,
        answer_with=lambda name: answer.update(now=SCRIPT[name]),
        hang=lambda: answer.update(now={"text": "ab", "chunks": 2, "stall": 60, "stall_after": 1}),
    )


@asynccontextmanager
async def of_kind(kind: str) -> AsyncGenerator[Subject]:
    if kind == "scripted":
        yield scripted()
    elif kind == "offline":
        yield Subject(OfflineModel(), answer_with=lambda _: None)
    else:
        async with remote(kind) as subject:
            yield subject


@pytest.fixture(params=["openai", "anthropic", "scripted", "offline"])
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    """Each kind of model."""
    async with of_kind(request.param) as subject:
        yield subject


@pytest.fixture(params=["openai", "anthropic", "scripted"])
async def slow(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    """Each kind that can fall silent in the middle of an answer, and does."""
    async with of_kind(request.param) as subject:
        subject.hang()
        yield subject


async def streamed(subject: Subject, answer: str) -> list[Piece]:
    subject.answer_with(answer)
    return [piece async for piece in subject.model.stream(saying(ASKED[answer]))]


async def test_text_comes_in_pieces_and_ends_with_why_and_who(subject: Subject) -> None:
    pieces = await streamed(subject, "text")

    texts = [piece.text for piece in pieces if isinstance(piece, TextPiece)]
    assert len(texts) > 1
    assert "".join(texts).startswith(("Grüße aus 北京 👋", "I am the offline model"))
    assert pieces[-1] == Stop("end", subject.model.name)
    assert sum(isinstance(piece, Stop) for piece in pieces) == 1


@pytest.mark.parametrize(("answer", "parcels"), [("one_call", ["AB-123"]), ("two_calls", ["AB-123", "CD-456"])])
async def test_calls_are_whole_and_have_ids_of_their_own(subject: Subject, answer: str, parcels: list[str]) -> None:
    pieces = await streamed(subject, answer)

    calls = [piece.call for piece in pieces if isinstance(piece, CallPiece)]
    assert [(call.name, call.object()) for call in calls] == [("track", {"parcel": parcel}) for parcel in parcels]
    assert len({call.id for call in calls} - {""}) == len(parcels)
    assert pieces[-1] == Stop("tools", subject.model.name)


@pytest.mark.parametrize("answer", ["text", "one_call", "two_calls"])
async def test_a_reply_has_all_that_was_handed_out_and_what_it_took(subject: Subject, answer: str) -> None:
    subject.answer_with(answer)
    async with Caller(LlmSettings(), models=[subject.model]) as caller:
        reply, pieces = await shown(caller, saying(ASKED[answer]))

    assert reply.text == "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
    assert reply.calls == tuple(piece.call for piece in pieces if isinstance(piece, CallPiece))
    assert reply.reason == ("end" if answer == "text" else "tools")
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0
    assert reply.usage.estimated is (subject.model.name in ("scripted", "offline"))


async def test_the_next_question_can_hold_what_was_called_and_given(subject: Subject) -> None:
    subject.answer_with("one_call")
    async with Caller(LlmSettings(), models=[subject.model]) as caller:
        first = await caller.ask(saying(ASKED["one_call"]))
        subject.answer_with("text")
        second = await caller.ask(
            saying(
                ASKED["one_call"],
                ChatMessage("assistant", first.text, calls=first.calls),
                ChatMessage("tool", "in Berlin", call_id=first.calls[0].id, name="track"),
            )
        )

    assert called(first) == [("track", '{"parcel":"AB-123"}')]
    assert second.text in ("Grüße aus 北京 👋", "track gave: in Berlin")


async def test_leaving_a_stream_ends_the_call(slow: Subject) -> None:
    before = asyncio.all_tasks()
    stream = slow.model.stream(saying(ASKED["text"]))

    first = await anext(stream)
    await stream.aclose()

    assert isinstance(first, TextPiece)
    async with asyncio.timeout(5):
        if slow.left is not None:
            await slow.left.wait()
    assert {task for task in asyncio.all_tasks() - before if "Wire" not in repr(task)} == set()


async def test_cancelling_who_asks_ends_the_call(slow: Subject) -> None:
    begun = asyncio.Event()
    async with Caller(LlmSettings(), models=[slow.model]) as caller:
        asking = asyncio.create_task(caller.ask(saying(ASKED["text"]), on_piece=lambda _: begun.set()))
        await begun.wait()

        asking.cancel()

        with pytest.raises(asyncio.CancelledError):
            await asking
        async with asyncio.timeout(5):
            if slow.left is not None:
                await slow.left.wait()


async def test_many_can_ask_at_once(subject: Subject) -> None:
    subject.answer_with("one_call")
    async with Caller(LlmSettings(), models=[subject.model]) as caller:
        replies = await asyncio.gather(*(caller.ask(saying(ASKED["one_call"])) for _ in range(20)))

    assert {tuple(called(reply)) for reply in replies} == {(("track", '{"parcel":"AB-123"}'),)}
