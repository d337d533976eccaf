import json
from typing import Any

import pytest

from holdfast.core.errors import ModelFailed
from holdfast.llm import ChatMessage, ModelRequest, TextPiece, ThinkingPiece, TokenUsage, ToolCall
from tests.llm.asking import HELLO, TRACK, called, saying, shown
from tests.llm.conftest import OpenCaller
from tests.llm.wires import Wire, recorded

pytestmark = pytest.mark.req("AGENT-03")

MODEL = "anthropic:claude-sonnet-4-5"


def events(*given: dict[str, Any]) -> bytes:
    """A stream of these events."""
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in given).encode()


def text(content: str) -> dict[str, str]:
    return {"type": "text", "text": content}


async def test_the_request_is_as_anthropic_has_it(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(recorded("anthropic_text"))
    caller = await open_caller(model=MODEL, base_url=wire.url, api_key="sk-ant-1", temperature=0)

    await caller.ask(
        ModelRequest(
            messages=[
                ChatMessage("system", "Be kind."),
                ChatMessage("system", "Be brief."),
                ChatMessage("user", "Where are they?"),
                ChatMessage("user", "My parcels, I mean."),
                ChatMessage(
                    "assistant",
                    "Let me look.",
                    calls=(ToolCall("call.1:0", "track", '{"parcel":"AB-123"}'), ToolCall("c2", "track", "{oops")),
                ),
                ChatMessage("tool", "in Berlin", call_id="call.1:0"),
                ChatMessage("tool", "bad arguments", call_id="c2"),
                ChatMessage("system", "The office closes soon."),
                ChatMessage("user", "So?"),
            ],
            tools=[TRACK],
            max_tokens=99,
        )
    )

    asked = wire.asked[0]
    assert asked.path == "/v1/messages"
    assert (asked.headers["x-api-key"], asked.headers["anthropic-version"]) == ("sk-ant-1", "2023-06-01")
    assert "authorization" not in asked.headers
    assert asked.body == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 99,
        "temperature": 0,
        "stream": True,
        "system": "Be kind.\n\nBe brief.",
        "tools": [{"name": "track", "description": "Where a parcel is.", "input_schema": TRACK.parameters}],
        "messages": [
            {"role": "user", "content": [text("Where are they?"), text("My parcels, I mean.")]},
            {
                "role": "assistant",
                "content": [
                    text("Let me look."),
                    {"type": "tool_use", "id": "call_1_0", "name": "track", "input": {"parcel": "AB-123"}},
                    {"type": "tool_use", "id": "c2", "name": "track", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1_0", "content": "in Berlin"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": "bad arguments"},
                    text("The office closes soon."),
                    text("So?"),
                ],
            },
        ],
    }


@pytest.mark.parametrize(
    ("messages", "sent"),
    [
        ([ChatMessage("user", " ")], [("user", "(nothing)")]),
        (
            [ChatMessage("assistant", "Hi"), ChatMessage("user", "Ho")],
            [("user", "(The conversation began earlier.)"), ("assistant", "Hi"), ("user", "Ho")],
        ),
    ],
)
async def test_what_anthropic_would_refuse_is_put_otherwise(
    wire: Wire, open_caller: OpenCaller, messages: list[ChatMessage], sent: list[tuple[str, str]]
) -> None:
    wire.will_send(recorded("anthropic_text"))
    caller = await open_caller(model=MODEL, base_url=wire.url)

    await caller.ask(ModelRequest(messages=messages))

    assert wire.asked[0].body["messages"] == [{"role": role, "content": [text(said)]} for role, said in sent]
    assert "system" not in wire.asked[0].body


async def test_tools_of_earlier_calls_are_named_where_none_may_be_called(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(recorded("anthropic_text"))
    caller = await open_caller(model=MODEL, base_url=wire.url)
    messages = [
        ChatMessage("user", "Hi"),
        ChatMessage("assistant", "", calls=(ToolCall("c", "track", "{}"),)),
        ChatMessage("tool", "in Berlin", call_id="c"),
    ]

    await caller.ask(ModelRequest(messages=messages))

    assert wire.asked[0].body["tools"] == [{"name": "track", "description": "", "input_schema": {"type": "object"}}]
    assert wire.asked[0].body["tool_choice"] == {"type": "none"}


async def test_text_comes_piece_by_piece_with_usage_that_counts_the_cache(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(recorded("anthropic_text"))
    caller = await open_caller(model=MODEL, base_url=wire.url.removesuffix("/v1"))

    reply, pieces = await shown(caller)

    assert pieces == [TextPiece("Grüße aus"), TextPiece(" 北京 👋")]
    assert reply.usage == TokenUsage(132, 9, cached_tokens=100)
    assert (reply.reason, reply.model) == ("end", MODEL)


async def test_thoughts_text_and_a_call_come_in_their_order(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(recorded("anthropic_one_call"))
    caller = await open_caller(model=MODEL, base_url=wire.url)

    reply, pieces = await shown(caller, saying("Where is AB-123?"))

    assert pieces[:2] == [ThinkingPiece("I should look."), TextPiece("Let me look.")]
    assert called(reply) == [("track", '{"parcel":"AB-123"}')]
    assert (reply.calls[0].id, reply.reason, reply.usage) == ("toolu_01T", "tools", TokenUsage(472, 89))


CALL = {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "track"}}


def arguments(piece: str, index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": piece}}


def stop(reason: str) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}}


@pytest.mark.parametrize(
    ("stream", "calls", "reason"),
    [
        ([CALL, arguments('{"parcel":"A'), stop("max_tokens")], [], "length"),
        ([CALL, stop("max_tokens")], [], "length"),
        ([CALL, stop("tool_use")], [("track", "{}")], "tools"),
        ([CALL, arguments("{}", index=7), stop("tool_use")], [("track", "{}")], "tools"),
        ([{"type": "something_new", "index": [0]}, stop("refusal")], [], "refused"),
        ([stop("model_context_window_exceeded")], [], "length"),
        ([stop("pause_turn")], [], "end"),
        ([{"type": "message_stop"}], [], "end"),
        ([{"type": "content_block_start"}, {"type": "content_block_delta", "delta": 3}, stop("end_turn")], [], "end"),
    ],
)
async def test_odd_streams_are_understood(
    wire: Wire, open_caller: OpenCaller, stream: list[dict[str, Any]], calls: list[tuple[str, str]], reason: str
) -> None:
    wire.will_send(events(*stream))
    caller = await open_caller(model=MODEL, base_url=wire.url)

    reply = await caller.ask(HELLO)

    assert (called(reply), reply.reason) == (calls, reason)


async def test_an_error_inside_the_stream_is_tried_again(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(recorded("anthropic_overloaded"), recorded("anthropic_text"))
    caller = await open_caller(model=MODEL, base_url=wire.url)

    reply = await caller.ask(HELLO)

    assert reply.text == "Grüße aus 北京 👋"
    assert len(wire.asked) == 2


async def test_a_request_that_is_wrong_is_not_tried_again(wire: Wire, open_caller: OpenCaller) -> None:
    refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long"}}
    wire.will_send(events(refusal))
    caller = await open_caller(model=MODEL, base_url=wire.url)

    with pytest.raises(ModelFailed, match="prompt is too long"):
        await caller.ask(HELLO)

    assert len(wire.asked) == 1
