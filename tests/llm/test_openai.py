import json
from typing import Any

import pytest

from holdfast.core.errors import ModelFailed
from holdfast.llm import ChatMessage, ModelRequest, TextPiece, ThinkingPiece, TokenUsage, ToolCall
from tests.llm.asking import HELLO, TRACK, called, saying, shown
from tests.llm.conftest import OpenCaller
from tests.llm.wires import Sent, Wire, recorded

pytestmark = pytest.mark.req("AGENT-03")


def chunks(*deltas: dict[str, Any], finish: str | None = "stop", done: bool = True) -> bytes:
    """A stream of these deltas."""
    events: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    if finish:
        events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    lines = [*map(json.dumps, events), *(["[DONE]"] if done else [])]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def call(arguments: object, name: str | None = "track", **fields: object) -> dict[str, Any]:
    """A delta with a piece of a call."""
    return {"tool_calls": [{**fields, "function": {"arguments": arguments} | ({"name": name} if name else {})}]}


async def test_the_request_is_as_openai_has_it(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(recorded("openai_text"))
    caller = await open_caller(model="openai:gpt-5", base_url=wire.url, api_key="sk-1", temperature=0.5)
    messages = [
        ChatMessage("system", "Be kind."),
        ChatMessage("user", "Where is AB-123?"),
        ChatMessage(
            "assistant", "", calls=(ToolCall("c1", "track", '{"parcel":"AB-123"}'), ToolCall("c2", "x", "{oops"))
        ),
        ChatMessage("tool", "in Berlin", call_id="c1", name="track"),
        ChatMessage("tool", "bad arguments", call_id="c2", name="x"),
    ]

    await caller.ask(ModelRequest(messages=messages, tools=[TRACK], max_tokens=99))

    function = {"name": "track", "description": "Where a parcel is.", "parameters": TRACK.parameters}
    assert wire.asked[0].path == "/v1/chat/completions"
    assert wire.asked[0].headers["authorization"] == "Bearer sk-1"
    assert wire.asked[0].body == {
        "model": "gpt-5",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Where is AB-123?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "track", "arguments": '{"parcel":"AB-123"}'}},
                    {"id": "c2", "type": "function", "function": {"name": "x", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "in Berlin"},
            {"role": "tool", "tool_call_id": "c2", "content": "bad arguments"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": function}],
        "max_completion_tokens": 99,
        "temperature": 0.5,
    }


async def test_other_providers_get_the_older_name_of_the_limit(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(recorded("openrouter_text"))
    caller = await open_caller(model="ollama:qwen3:8b", base_url=wire.url)

    await caller.ask(HELLO)

    body = wire.asked[0].body
    assert (body["model"], body["max_tokens"]) == ("qwen3:8b", 4096)
    assert not {"max_completion_tokens", "tools", "temperature"} & body.keys()
    assert "authorization" not in wire.asked[0].headers


async def test_text_comes_piece_by_piece_with_usage(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(recorded("openai_text"))
    caller = await open_caller(model="openai:gpt-5", base_url=wire.url)

    reply, pieces = await shown(caller)

    assert pieces == [TextPiece("Grüße"), TextPiece(" aus 北京"), TextPiece(" 👋")]
    assert (reply.text, reply.reason, reply.model) == ("Grüße aus 北京 👋", "end", "openai:gpt-5")
    assert reply.usage == TokenUsage(19, 8, cached_tokens=5)


async def test_parallel_calls_whose_arguments_come_interleaved_are_put_together(
    wire: Wire, open_caller: OpenCaller
) -> None:
    wire.will_send(recorded("openai_two_calls"))
    caller = await open_caller(model="openai:gpt-4o", base_url=wire.url)

    reply = await caller.ask(saying("Where are they?"))

    assert called(reply) == [("track", '{"parcel":"AB-123"}'), ("track", '{"parcel":"CD-456"}')]
    assert [call.id for call in reply.calls] == ["call_a", "call_b"]
    assert reply.reason == "tools"


async def test_calls_that_all_have_the_index_0_are_told_apart(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(recorded("ollama_two_calls"))
    caller = await open_caller(model="ollama:qwen3:8b", base_url=wire.url)

    reply, pieces = await shown(caller)

    assert called(reply) == [("track", '{"parcel":"AB-123"}'), ("track", '{"parcel":"CD-456"}')]
    assert pieces[0] == ThinkingPiece("Two parcels.")
    assert (reply.reason, reply.usage.estimated) == ("tools", True)


async def test_what_the_model_thinks_is_no_part_of_the_answer(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(recorded("vllm_reasoning"))
    caller = await open_caller(model="openai:deepseek-r1", base_url=wire.url)

    reply = await caller.ask(HELLO)

    assert (reply.thinking, reply.text) == ("The user says hello.", "Hello!")


ONE = [("track", '{"parcel":"A"}')]
TWO = [*ONE, ("track", '{"parcel":"B"}')]


@pytest.mark.parametrize(
    ("deltas", "calls"),
    [
        ([call('{"parcel":', index=0, id=""), call('"A"}', None, index=0)], ONE),
        ([call('{"parcel":', id="a"), call('"A"}', None)], ONE),
        ([call('{"parcel":"A"}', id="a"), call('{"parcel":"B"}', id="b")], TWO),
        ([call('{"parcel":"A"}'), call('{"parcel":"B"}')], TWO),
        ([call('{"parcel":"A"}', index=0), call('{"parcel":"B"}', index=0)], TWO),
        ([call({"parcel": "A"}), call({"parcel": "B"})], TWO),
        ([call('{"par', index=0, id="a"), call('cel":"A"}', index=0, id="a")], ONE),
        ([call('{"par', id="a"), call('{"parcel":"B"}', id="b"), call('cel":"A"}', None, id="a")], TWO),
        ([call('{"parcel":"A"}', index=0, id="a"), call("", index=0)], ONE),
        ([call('{"parcel":"A"}', index=0, id="a"), call('{"parcel":"B"}', index=1, id="a")], TWO),
        ([call("", "now", index=0)], [("now", "{}")]),
        ([call(None, "now", index=0)], [("now", "{}")]),
        ([call("{}", None, index=0)], []),
    ],
)  # fmt: skip
async def test_calls_are_understood_however_they_are_numbered(
    wire: Wire, open_caller: OpenCaller, deltas: list[dict[str, Any]], calls: list[tuple[str, str]]
) -> None:
    wire.will_send(chunks(*deltas))
    caller = await open_caller(model="openai:any", base_url=wire.url)

    reply = await caller.ask(HELLO)

    assert called(reply) == calls
    assert len({call.id for call in reply.calls} - {""}) == len(calls)


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", "end"),
        ("eos", "end"),
        ("length", "length"),
        ("content_filter", "refused"),
        ("tool_calls", "end"),
        ("COMPLETE", "end"),
    ],
)
async def test_an_answer_says_why_it_ends(wire: Wire, open_caller: OpenCaller, finish: str, reason: str) -> None:
    wire.will_send(chunks({"content": "Hi"}, finish=finish))
    caller = await open_caller(model="openai:any", base_url=wire.url)

    reply = await caller.ask(HELLO)

    assert reply.reason == reason


async def test_a_call_that_the_limit_of_tokens_cut_is_left_out(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(
        chunks(call('{"parcel":"A"}', index=0), call('{"parcel":', index=1), call("", index=2), finish="length")
    )
    caller = await open_caller(model="openai:any", base_url=wire.url)

    reply = await caller.ask(HELLO)

    assert (called(reply), reply.reason) == (ONE, "length")


async def test_arguments_that_are_no_json_are_handed_on_as_they_are(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(chunks(call("{oops", index=0), finish="tool_calls"))
    caller = await open_caller(model="openai:any", base_url=wire.url)

    reply = await caller.ask(HELLO)

    assert called(reply) == [("track", "{oops")]
    assert reply.calls[0].object() is None


def test_a_call_knows_whether_its_arguments_are_an_object() -> None:
    given = ['{"a":1}', "[1]", "", "{oops", '{"a":"\ud83d"}', "[" * 100_000]

    assert [ToolCall("", "", text).object() for text in given] == [{"a": 1}, None, None, None, None, None]


async def test_half_a_character_is_sent_as_a_question_mark(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(recorded("openai_text"))
    caller = await open_caller(model="openai:any", base_url=wire.url)

    await caller.ask(saying("half \ud83d of 👋"))

    assert wire.asked[0].body["messages"][0]["content"] == "half ? of 👋"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (chunks({"content": "Hi"}, done=False), "Hi"),
        (chunks({"content": "Hi"}, finish=None), "Hi"),
        (chunks({"content": [{"type": "text", "text": "Hi"}]}), "Hi"),
        (chunks({"refusal": "No."}), "No."),
        (b'data: {"choices":null}\n\ndata: {"choices":[null]}\n\ndata: 7\n\n' + chunks({"content": "Hi"}), "Hi"),
        (chunks({"content": 5, "tool_calls": "x"}, {"tool_calls": [None, {"function": []}]}, {"content": "Hi"}), "Hi"),
    ],
)
async def test_odd_streams_are_understood(wire: Wire, open_caller: OpenCaller, body: bytes, text: str) -> None:
    wire.will_send(body)
    caller = await open_caller(model="openai:any", base_url=wire.url)

    reply = await caller.ask(HELLO)

    assert reply.text == text
    assert reply.reason == ("refused" if text == "No." else "end")


@pytest.mark.parametrize("usage", [{"prompt_tokens": -1}, {"prompt_tokens": "7"}, {"completion_tokens": True}, {}])
async def test_usage_that_makes_no_sense_is_estimated(
    wire: Wire, open_caller: OpenCaller, usage: dict[str, Any]
) -> None:
    wire.will_send(f'data: {{"choices":[],"usage":{json.dumps(usage)}}}\n\n'.encode() + chunks({"content": "Hi"}))
    caller = await open_caller(model="openai:any", base_url=wire.url)

    reply = await caller.ask(HELLO)

    assert reply.usage.estimated
    assert reply.usage.input_tokens > 0


async def test_an_error_inside_the_stream_is_a_failure(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(recorded("openrouter_error"))
    caller = await open_caller(model="openai:any", base_url=wire.url)

    with pytest.raises(ModelFailed, match="returned 502: Provider disconnected unexpectedly") as failed:
        await shown(caller)

    assert failed.value.details == {"model": "openai:any", "status": 502, "retryable": True}


@pytest.mark.parametrize(
    ("event", "retryable"),
    [
        ({"error": "out of memory"}, True),
        ({"error": {"message": "bad", "type": "invalid_request_error"}}, False),
        ({"error": {"message": "bad", "code": "insufficient_quota"}}, False),
        ({"object": "error", "message": "bad", "code": 400}, False),
        ({"object": "error", "message": "bad", "code": 500}, True),
    ],
)
async def test_whether_an_error_in_a_stream_may_pass_is_told(
    wire: Wire, open_caller: OpenCaller, event: dict[str, Any], retryable: bool
) -> None:
    wire.will_send(f"data: {json.dumps(event)}\n\n".encode())
    caller = await open_caller(model="openai:any", base_url=wire.url, attempts=1)

    with pytest.raises(ModelFailed) as failed:
        await caller.ask(HELLO)

    assert failed.value.retryable is retryable


async def test_more_calls_than_anyone_needs_are_refused(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(Sent([chunks(*(call("{}", index=number) for number in range(1001)))]))
    caller = await open_caller(model="openai:any", base_url=wire.url, attempts=1)

    with pytest.raises(ModelFailed, match="more than 1000 tool calls"):
        await caller.ask(HELLO)
