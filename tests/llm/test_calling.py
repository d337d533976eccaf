import asyncio
import threading
import time

import pytest

from holdfast.core.errors import BadSetting, ModelFailed
from holdfast.llm import Caller, ModelRequest, ScriptedModel, Shown, TextPiece, TokenUsage, ToolSpec
from holdfast.llm.answer_stream import AnswerTimeouts
from holdfast.llm.caller import MAX_AGENT_MODELS
from holdfast.llm.model import ChatMessage
from tests.llm.asking import HELLO, shown
from tests.llm.conftest import OpenCaller
from tests.llm.wires import Sent, Wire, error, recorded

pytestmark = pytest.mark.req("AGENT-03")

BROKEN = {"text": "Half of it", "chunks": 2, "fail": {"after": 1}}


async def failure(caller: Caller, request: ModelRequest = HELLO) -> ModelFailed:
    with pytest.raises(ModelFailed) as failed:
        await shown(caller, request)
    return failed.value


async def test_what_may_pass_is_tried_again(open_caller: OpenCaller) -> None:
    model = ScriptedModel([{"fail": {"status": 500}}, {"fail": {}}, "Hello."])
    caller = await open_caller(model)

    reply, pieces = await shown(caller)

    assert (reply.text, pieces) == ("Hello.", [TextPiece("Hello.")])
    assert len(model.requests) == 3
    assert caller.state == ("ok", "scripted")


async def test_a_model_is_asked_as_often_as_the_settings_say(open_caller: OpenCaller) -> None:
    model = ScriptedModel([{"fail": {"status": 500, "message": "oops"}, "repeat": True}])
    caller = await open_caller(model, attempts=4)

    failed = await failure(caller)

    assert str(failed) == "the model scripted returned 500: oops"
    assert len(model.requests) == 4
    assert caller.state == ("reduced", str(failed))


async def test_what_does_not_pass_is_not_tried_again(open_caller: OpenCaller) -> None:
    model = ScriptedModel([{"fail": {"status": 400}, "repeat": True}])
    caller = await open_caller(model)

    failed = await failure(caller)

    assert failed.details == {"model": "scripted", "status": 400, "retryable": False}
    assert len(model.requests) == 1


@pytest.mark.parametrize("header", [("Retry-After", "1"), ("retry-after-ms", "1000")])
async def test_it_waits_as_long_as_it_is_told(wire: Wire, open_caller: OpenCaller, header: tuple[str, str]) -> None:
    wire.will_send(Sent([error("slow down")], status=429, headers=dict([header])), Sent([recorded("openai_text")]))
    caller = await open_caller(model="openai:any", base_url=wire.url)
    started = time.monotonic()

    await caller.ask(HELLO)

    assert time.monotonic() - started >= 1


@pytest.mark.parametrize("told", ["3600", "Wed, 21 Oct 2065 07:28:00 GMT"])
async def test_it_does_not_wait_for_hours(wire: Wire, open_caller: OpenCaller, told: str) -> None:
    wire.will_send(Sent([error("slow down")], status=429, headers={"Retry-After": told}))
    caller = await open_caller(model="openai:any", base_url=wire.url)

    failed = await failure(caller)

    assert failed.status == 429
    assert len(wire.asked) == 1


@pytest.mark.parametrize("told", ["soon", "-1", "nan", "inf", "1e9", "", "99999999999999999999"])
async def test_a_pause_that_makes_no_sense_is_not_kept(wire: Wire, open_caller: OpenCaller, told: str) -> None:
    wire.will_send(Sent([b""], status=503, headers={"Retry-After": told}), Sent([recorded("openai_text")]))
    caller = await open_caller(model="openai:any", base_url=wire.url)

    async with asyncio.timeout(10):
        reply = await caller.ask(HELLO)

    assert reply.text == "Grüße aus 北京 👋"


async def test_an_answer_that_breaks_off_is_not_begun_anew_unasked(open_caller: OpenCaller) -> None:
    model = ScriptedModel([BROKEN, "Whole."])
    caller = await open_caller(model, ScriptedModel(["Fallback."], name="other"))
    pieces: list[Shown] = []

    with pytest.raises(ModelFailed, match="broke off") as failed:
        await caller.ask(HELLO, on_piece=pieces.append)

    assert failed.value.retryable
    assert pieces == [TextPiece("Half ")]
    assert len(model.requests) == 1


async def test_who_can_restart_gets_the_answer_anew(open_caller: OpenCaller) -> None:
    caller = await open_caller(ScriptedModel([BROKEN, BROKEN, "Whole."]))
    seen: list[str] = []

    reply = await caller.ask(
        HELLO, on_piece=lambda piece: seen.append(getattr(piece, "text", "")), on_restart=lambda: seen.append("restart")
    )

    assert seen == ["Half ", "restart", "Half ", "restart", "Whole."]
    assert reply.text == "Whole."


async def test_who_sees_no_pieces_gets_the_answer_anew(open_caller: OpenCaller) -> None:
    caller = await open_caller(ScriptedModel([BROKEN, "Whole."]))

    reply = await caller.ask(HELLO)

    assert reply.text == "Whole."


@pytest.mark.parametrize("status", [400, 401, 403, 404, 500])
async def test_the_next_model_answers_where_one_cannot(open_caller: OpenCaller, status: int) -> None:
    first = ScriptedModel([{"fail": {"status": status}, "repeat": True}], name="first")
    caller = await open_caller(first, ScriptedModel(["Second."], name="second"), attempts=2)

    reply, _ = await shown(caller)

    assert (reply.text, reply.model) == ("Second.", "second")
    assert len(first.requests) == (2 if status == 500 else 1)


async def test_fallbacks_of_the_settings_are_asked_in_order(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(Sent([error("no")], status=404), Sent([error("no")], status=401), Sent([recorded("openai_text")]))
    caller = await open_caller(model="openai:a", fallbacks="openai:b,openai:c,offline", base_url=wire.url)

    reply = await caller.ask(HELLO)

    assert [asked.body["model"] for asked in wire.asked] == ["a", "b", "c"]
    assert reply.model == "openai:c"


async def test_where_no_model_answers_all_reasons_are_told(open_caller: OpenCaller) -> None:
    models = [ScriptedModel([{"fail": {"status": status, "message": name}}], name=name)
              for name, status in (("a", 401), ("b", 500))]  # fmt: skip
    caller = await open_caller(*models, attempts=1)

    failed = await failure(caller)

    assert str(failed) == "all models failed: the model a returned 401 (a); the model b returned 500 (b)"
    assert failed.details == {"model": "b", "status": 500, "retryable": True}


async def test_another_model_can_be_named_and_has_the_same_fallbacks(open_caller: OpenCaller) -> None:
    caller = await open_caller(model="openai:any", fallbacks=["offline"])

    reply = await caller.ask(HELLO, model="anthropic:any")

    assert reply.model == "offline"
    assert (caller.model_name, caller.is_offline()) == ("openai:any", False)


@pytest.mark.parametrize("name", ["gpt-5", "openai:", "scripted:", "", "bedrock:x", "offline:x"])
async def test_a_model_that_is_none_is_refused_with_the_forms(open_caller: OpenCaller, name: str) -> None:
    caller = await open_caller()

    with pytest.raises(BadSetting, match="Use a name like openai:NAME") as refused:
        await caller.ask(HELLO, model=name or "?")

    assert refused.value.details["key"] == "llm.model"


@pytest.mark.parametrize(
    ("entry", "limits", "said"),
    [
        ({"stall": 60}, {"first_token_timeout": 0.1}, "did not start to answer within 0.1 s"),
        (
            {"text": "abcd", "chunks": 4, "stall": 60, "stall_after": 2},
            {"token_timeout": 0.1},
            "sent nothing for 0.1 s",
        ),
        ({"text": "a" * 1000, "chunks": 1000, "delay": 0.01}, {"timeout": 0.3}, "did not finish its answer in time"),
    ],
)
async def test_a_model_that_stalls_is_given_up(
    open_caller: OpenCaller, entry: dict[str, object], limits: dict[str, float], said: str
) -> None:
    caller = await open_caller(ScriptedModel([{**entry, "repeat": True}]), attempts=2, **limits)
    started = time.monotonic()

    failed = await failure(caller)

    assert said in str(failed)
    assert failed.retryable
    assert time.monotonic() - started < 5


async def test_a_stalled_connection_is_closed_and_the_next_attempt_answers(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(Sent([b": thinking\n\n"], hangs=True), Sent([recorded("openai_text")]))
    caller = await open_caller(model="openai:any", base_url=wire.url, first_token_timeout=1)

    async with asyncio.timeout(10):
        reply = await caller.ask(HELLO)
        await wire.left.wait()

    assert reply.text == "Grüße aus 北京 👋"


async def test_long_arguments_are_no_silence(open_caller: OpenCaller) -> None:
    entry = {"calls": [{"name": "track", "arguments": {"parcel": "AB-123"}}], "chunks": 8, "delay": 0.2}
    caller = await open_caller(ScriptedModel([entry]), token_timeout=1.2)

    reply = await caller.ask(HELLO)

    assert reply.calls[0].object() == {"parcel": "AB-123"}


@pytest.mark.parametrize("sent", [Sent(hangs=True), Sent([recorded("openai_text")[:900]], hangs=True)])
async def test_cancelling_closes_the_connection(wire: Wire, open_caller: OpenCaller, sent: Sent) -> None:
    wire.will_send(sent)
    caller = await open_caller(model="openai:any", base_url=wire.url)
    before = asyncio.all_tasks()
    asking = asyncio.create_task(caller.ask(HELLO))
    await wire.arrived.wait()

    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking
    async with asyncio.timeout(5):
        await wire.left.wait()
    assert asyncio.all_tasks() - before - {asking} == {task for task in asyncio.all_tasks() if "_serve" in repr(task)}


async def test_who_listens_and_fails_ends_the_call(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(Sent([recorded("openai_text")[:900]], hangs=True))
    caller = await open_caller(model="openai:any", base_url=wire.url)

    def refuse(_: Shown) -> None:
        raise KeyError("not mine")

    with pytest.raises(KeyError, match="not mine"):
        await caller.ask(HELLO, on_piece=refuse)

    async with asyncio.timeout(5):
        await wire.left.wait()


async def test_no_more_answers_are_waited_for_than_allowed(open_caller: OpenCaller) -> None:
    running = most = 0

    def entry(_: ModelRequest) -> dict[str, object]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        return {"text": "Hi", "delay": 0.02}

    def ended(_: Shown) -> None:
        nonlocal running
        running -= 1

    caller = await open_caller(ScriptedModel(entry), concurrency=3)

    await asyncio.gather(*(caller.ask(HELLO, on_piece=ended) for _ in range(20)))

    assert most == 3


async def test_waiting_for_a_free_place_has_an_end(open_caller: OpenCaller) -> None:
    caller = await open_caller(ScriptedModel(["Hello."]), concurrency=1, timeout=0.3)
    patience = AnswerTimeouts(60, 60, time.monotonic() + 60)

    async with caller._wait_for_slot("scripted", patience):  # pyright: ignore[reportPrivateUsage] - an answer that lasts longer
        refused = await failure(caller)

    assert "the model scripted was not called: all answers of models are in use; the limit is 1" in str(refused)
    assert "none was released within 0.3 seconds" in str(refused)


async def test_after_failures_and_cancellations_every_place_is_free(open_caller: OpenCaller) -> None:
    model = ScriptedModel([{"fail": {"status": 400}}, {"text": "a b", "chunks": 2, "delay": 0.1}, "Hello."])
    caller = await open_caller(model, concurrency=1)
    begun = asyncio.Event()
    await failure(caller)
    asking = asyncio.create_task(caller.ask(HELLO, on_piece=lambda _: begun.set()))
    await begun.wait()
    asking.cancel()

    async with asyncio.timeout(5):
        reply = await caller.ask(HELLO)

    assert reply.text == "Hello."


async def test_an_answer_without_measure_is_given_up(open_caller: OpenCaller) -> None:
    caller = await open_caller(ScriptedModel([{"calls": [{"name": "x", "arguments": "a" * 10_000_000}]}]))

    failed = await failure(caller)

    assert "sent an answer that is too long" in str(failed)
    assert not failed.retryable


async def test_what_a_model_does_not_tell_is_estimated_and_priced(open_caller: OpenCaller) -> None:
    tool = ToolSpec("track", "Where a parcel is.", {"type": "object"})
    request = ModelRequest(messages=[ChatMessage("user", "one two three")], tools=[tool])
    caller = await open_caller(ScriptedModel(["four five"]), prices="scripted=1000000/2000000")

    reply = await caller.ask(request)

    counter = await caller.counter()
    asked = 4 + counter.count("one two three") + counter.count(tool.to_json())
    assert reply.usage == TokenUsage(asked, counter.count("four five"), estimated=True)
    assert reply.cost == asked + 2 * reply.usage.output_tokens


async def test_what_is_not_said_comes_from_the_settings(open_caller: OpenCaller) -> None:
    model = ScriptedModel(["a", "b"])
    caller = await open_caller(model, max_output_tokens=77, temperature=0.3)

    await caller.ask(HELLO)
    await caller.ask(ModelRequest(messages=HELLO.messages, max_tokens=5, temperature=0.0))

    assert [(request.max_tokens, request.temperature) for request in model.requests] == [(77, 0.3), (5, 0.0)]


async def test_without_any_setting_the_offline_model_answers_and_says_so(open_caller: OpenCaller) -> None:
    caller = await open_caller()

    reply = await caller.ask(HELLO)

    assert (caller.model_name, caller.is_offline(), reply.model) == ("offline", True, "offline")
    assert caller.state[0] == "reduced"
    assert "HOLDFAST_LLM__MODEL" in caller.state[1]


async def test_a_vocabulary_is_loaded_beside_the_event_loop_and_once(
    open_caller: OpenCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await open_caller(model="offline")
    counted: list[int] = []

    class Vocabulary:
        name = "vocabulary"

        def count(self, text: str) -> int:
            counted.append(threading.get_ident())
            return len(text)

    def vocabulary(*_: object) -> Vocabulary:
        return Vocabulary()

    monkeypatch.setattr("holdfast.llm.caller.counter_for", vocabulary)

    for _ in range(2):
        await caller.counter("openai:of-its-own")

    assert len(counted) == 1
    assert counted[0] != threading.get_ident()


async def test_models_that_agents_name_are_kept_in_a_bounded_number(open_caller: OpenCaller) -> None:
    caller = await open_caller(model="ollama:ours")

    for number in range(3 * MAX_AGENT_MODELS):
        caller._open(f"ollama:{number}")  # pyright: ignore[reportPrivateUsage]

    assert caller._open("ollama:ours") is caller._open("ollama:ours")  # pyright: ignore[reportPrivateUsage]
    assert len(caller._agent_models) == MAX_AGENT_MODELS  # pyright: ignore[reportPrivateUsage]
