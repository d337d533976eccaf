import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import BadSetting, ModelFailed
from holdfast.llm import ChatMessage, ModelRequest, ScriptedModel, TextPiece, ThinkingPiece, TokenUsage, ToolCall
from tests.llm.asking import HELLO, called, saying, shown
from tests.llm.conftest import OpenCaller

pytestmark = pytest.mark.req("AGENT-03")

CALL = {"calls": [{"name": "track", "arguments": {"parcel": "A"}}]}


def script(folder: Path, *lines: object) -> str:
    """A model that answers by a file of these lines."""
    path = folder / "script.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return f"scripted:{path}"


async def test_answers_are_given_in_order_and_then_no_more(open_caller: OpenCaller) -> None:
    model = ScriptedModel(["one", {"text": "two"}])
    caller = await open_caller(model)

    replies = [await caller.ask(HELLO) for _ in range(2)]

    assert [reply.text for reply in replies] == ["one", "two"]
    assert [request.messages for request in model.requests] == [HELLO.messages] * 2
    with pytest.raises(ModelFailed, match="no remaining answer of its script"):
        await caller.ask(HELLO)


async def test_a_rule_answers_what_it_fits_as_often_as_it_may(open_caller: OpenCaller) -> None:
    rules = [{"when": "(?i)tea", "text": "green", "repeat": True}, {"text": "once"}, {"text": "ever", "repeat": True}]
    caller = await open_caller(ScriptedModel(rules))

    said = [(await caller.ask(saying(text))).text for text in ("Tea?", "x", "TEA", "y", "z")]

    assert said == ["green", "once", "green", "ever", "ever"]


async def test_text_and_arguments_come_in_as_many_pieces_as_wanted(open_caller: OpenCaller) -> None:
    entry = {"thinking": "hm", "text": "abcdefg", **CALL, "chunks": 3, "usage": {"input_tokens": 7, "cached_tokens": 2}}
    caller = await open_caller(ScriptedModel([entry]))

    reply, pieces = await shown(caller)

    assert pieces[:5] == [ThinkingPiece("h"), ThinkingPiece("m"), TextPiece("abc"), TextPiece("def"), TextPiece("g")]
    assert (called(reply), reply.reason, reply.usage) == ([("track", '{"parcel":"A"}')], "tools", TokenUsage(7, 0, 2))


@pytest.mark.parametrize("after", [0, 1, 2, 3, 4])
async def test_a_failure_among_the_arguments_hands_out_no_call(open_caller: OpenCaller, after: int) -> None:
    entry = {**CALL, "chunks": 4, "fail": {"after": after, "message": "cut"}}
    caller = await open_caller(ScriptedModel([entry]), attempts=1)

    with pytest.raises(ModelFailed, match="broke off its answer: cut"):
        await shown(caller)


async def test_a_function_can_answer(open_caller: OpenCaller) -> None:
    caller = await open_caller(ScriptedModel(lambda request: request.messages[-1].content.upper()))

    reply = await caller.ask(saying("quiet"))

    assert reply.text == "QUIET"


async def test_malice_is_said_as_it_is_written(open_caller: OpenCaller) -> None:
    calls = [{"name": "rm", "arguments": "{oops", "id": "same"}, {"name": "no such tool", "id": "same"}]
    caller = await open_caller(ScriptedModel([{"calls": calls, "reason": "length"}]))

    reply = await caller.ask(HELLO)

    assert reply.calls == (ToolCall("same", "rm", "{oops"), ToolCall("same", "no such tool", "{}"))
    assert reply.reason == "length"


async def test_a_script_by_step_goes_on_where_the_conversation_is(open_caller: OpenCaller, tmp_path: Path) -> None:
    name = script(tmp_path, {"by": "step"}, CALL, "", {"text": "in Berlin", "repeat": True})
    asked = [ChatMessage("user", "before"), ChatMessage("assistant", "yes?"), ChatMessage("user", "Where is A?")]
    midway = [*asked, ChatMessage("assistant", "", calls=(ToolCall("c", "track", "{}"),)), ChatMessage("tool", "x")]

    first = await (await open_caller(model=name)).ask(ModelRequest(messages=asked))
    again = await (await open_caller(model=name)).ask(ModelRequest(messages=asked))
    other = await (await open_caller(model=name)).ask(ModelRequest(messages=midway))

    assert called(first) == called(again) == [("track", '{"parcel":"A"}')]
    assert (other.text, other.model) == ("in Berlin", name)


async def test_a_script_by_step_can_tell_turns_apart(open_caller: OpenCaller, tmp_path: Path) -> None:
    name = script(tmp_path, {"by": "step"}, {"when": "tea", "text": "1"}, {"when": "milk", "text": "2"})
    caller = await open_caller(model=name)

    assert (await caller.ask(saying("milk"))).text == "2"
    assert (await caller.ask(saying("tea"))).text == "1"
    with pytest.raises(ModelFailed, match="no answer"):
        await caller.ask(saying("water"))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{oops", "line 2 is invalid: JSON is malformed"),
        ({"txet": "a"}, "line 2 is invalid: Object contains unknown field `txet`"),
        ({"chunks": "many"}, "line 2 is invalid: Expected `int`"),
        ({"when": "("}, "line 2 is invalid: missing )"),
        ("[1]", "line 2 is invalid: Expected `object`, got `array`"),
    ],
)
async def test_a_script_that_is_wrong_is_refused_with_the_line(
    open_caller: OpenCaller, tmp_path: Path, line: Any, why: str
) -> None:
    caller = await open_caller(model=script(tmp_path, {"by": "order"}, line))

    with pytest.raises(BadSetting) as refused:
        await caller.ask(HELLO)

    assert why in str(refused.value)


@pytest.mark.parametrize(("content", "why"), [(None, "No such file"), (b"\xff", "it is not UTF-8")])
async def test_a_script_that_cannot_be_read_is_said(
    open_caller: OpenCaller, tmp_path: Path, content: bytes | None, why: str
) -> None:
    if content is not None:
        (tmp_path / "script").write_bytes(content)
    caller = await open_caller(model=f"scripted:{tmp_path / 'script'}")

    with pytest.raises(BadSetting, match=why):
        await caller.ask(HELLO)


async def test_a_script_is_a_file_of_a_sensible_size(
    open_caller: OpenCaller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.llm.scripted.MAX_SCRIPT_BYTES", 100)
    caller = await open_caller(model="scripted:/dev/zero")
    large = await open_caller(model=script(tmp_path, "x" * 101))

    with pytest.raises(BadSetting, match="it is not a file"):
        await caller.ask(HELLO)
    with pytest.raises(BadSetting, match="it has more than 100 bytes"):
        await large.ask(HELLO)
