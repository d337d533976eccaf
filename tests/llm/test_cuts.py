"""Streams that are cut: anywhere, in any pieces, with and without an end."""

import json

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from holdfast.core.errors import ModelFailed
from holdfast.core.settings import LlmSettings
from holdfast.llm import Caller, CallPiece, Piece, Stop, TokenUsage
from holdfast.llm.anthropic import AnthropicMessage
from holdfast.llm.endpoint import Connections, ModelEndpoint
from holdfast.llm.openai import OpenAiCompletion
from holdfast.llm.sse import EventParser
from tests.llm.asking import HELLO, called
from tests.llm.wires import Sent, Wire, recorded

pytestmark = pytest.mark.req("AGENT-03")

ENDPOINT = ModelEndpoint("http://host/v1", model="m", connections=Connections())
STREAMS = ["openai_text", "openai_one_call", "openai_two_calls", "ollama_two_calls", "anthropic_one_call",
           "anthropic_two_calls", "anthropic_text"]  # fmt: skip


def pieces(stream: bytes, *, anthropic: bool) -> tuple[list[Piece], bool]:
    """The pieces that a stream gives, and whether it was whole."""
    found: list[Piece] = []
    message, completion = AnthropicMessage("m", ENDPOINT), OpenAiCompletion("m", ENDPOINT)
    try:
        for part in EventParser().feed(stream):
            if part.data == b"[DONE]":
                completion.done = True
                break
            value = json.loads(part.data)
            found += message.take(part.kind, value) if anthropic else completion.take(value)
        found += message.end() if anthropic else completion.end()
    except ModelFailed:
        return found, False
    return found, True


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_cut_at_any_byte_gives_the_same_pieces_and_fails_or_is_whole(name: str) -> None:
    stream, anthropic = recorded(name), name.startswith("anthropic")
    whole, _ = pieces(stream, anthropic=anthropic)

    for place in range(len(stream)):
        cut, ended = pieces(stream[:place], anthropic=anthropic)

        if ended:  # all but the usage, which may come last
            assert [p for p in cut if not isinstance(p, TokenUsage)] == [
                p for p in whole if not isinstance(p, TokenUsage)
            ]
        else:
            assert cut == whole[: len(cut)]
            assert not any(isinstance(piece, CallPiece | Stop) for piece in cut)


@settings(max_examples=25)
@given(
    name=st.sampled_from(STREAMS),
    places=st.lists(st.integers(1, 3000), max_size=12),
    end=st.integers(1, 3000) | st.none(),
)
async def test_over_the_network_no_cut_makes_another_answer(name: str, places: list[int], end: int | None) -> None:
    stream = recorded(name)[:end]
    cuts = sorted({place for place in places if place < len(stream)})
    wire = Wire()
    wire.will_send(Sent([stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)], breaks=True))
    whole = Wire()
    whole.will_send(recorded(name))
    kind = "anthropic" if name.startswith("anthropic") else "openai"

    async with wire.serving(), whole.serving():
        async with Caller(LlmSettings(model=f"{kind}:m", base_url=whole.url)) as caller:
            expected = await caller.ask(HELLO)
        async with Caller(LlmSettings(model=f"{kind}:m", base_url=wire.url, attempts=1)) as caller:
            try:
                reply = await caller.ask(HELLO)
            except ModelFailed as failure:
                event(f"failed: {failure.what}")
            else:
                assert (reply.text, called(reply)) == (expected.text, called(expected))
                assert reply.reason == expected.reason


NAMES = """
    choices delta content tool_calls function name arguments index id finish_reason error usage type message
    content_block text partial_json code object stop_reason
"""
KEYS = st.sampled_from(NAMES.split())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 600) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=100)
@given(chunks=st.lists(st.dictionaries(KEYS, JSON, max_size=5), max_size=5), kind=st.sampled_from(["", "error", "x"]))
def test_whatever_a_server_sends_is_an_answer_or_a_failure(chunks: list[dict[str, object]], kind: str) -> None:
    for answer in (OpenAiCompletion("m", ENDPOINT), AnthropicMessage("m", ENDPOINT)):
        try:
            for chunk in chunks:
                if isinstance(answer, AnthropicMessage):
                    list(answer.take(kind, chunk))
                else:
                    list(answer.take(chunk))
            ended = list(answer.end())
        except ModelFailed:
            continue
        assert isinstance(ended[-1], Stop)
