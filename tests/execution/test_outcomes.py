import asyncio
import logging
import math
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import NotFound
from holdfast.core.ids import uuid7
from holdfast.core.text import dumps, loads, render
from holdfast.core.threads import count_abandoned
from holdfast.execution.executor import Executor
from holdfast.execution.function_runner import FunctionRunner
from holdfast.execution.outcomes import LARGE, MAX_RESULT_BYTES, MAX_WEIGHT, NOTHING, REDACTED, Outcome, cut
from holdfast.execution.runner import IN_DOUBT
from holdfast.skills.function_tools import MOST_ABANDONED, tool_of
from holdfast.skills.run import Run, current_run
from holdfast.skills.tool import Tool

RUN = Run("ann", "support", "web-42", uuid7(), uuid7(), "call-1", "key-1")
EXECUTOR = Executor({"function": FunctionRunner()})


@dataclass
class Address:
    street: str
    number: int


async def ship(parcel: str, to: Address | None = None, via: Literal["air", "sea"] = "sea", copies: int = 1) -> str:
    """Ship a parcel."""
    return f"{parcel} {to} {via} {copies}"


SHIP = tool_of(ship)


async def run(function: Any, *, timeout: float = 5, max_output_bytes: int = 10_000, **arguments: Any) -> Outcome:
    """What comes of calling a function as a tool called `job`."""
    tool = tool_of(function, name="job")
    return await EXECUTOR.run(tool, arguments, RUN, timeout=timeout, max_output_bytes=max_output_bytes)


@pytest.mark.req("EXEC-02")
@pytest.mark.parametrize(
    ("value", "text", "result"),
    [
        ("plain", "plain", "plain"),
        (None, NOTHING, None),
        ("", "", ""),
        (7, "7", 7),
        ({"a": [1, True, None]}, '{"a":[1,true,null]}', {"a": [1, True, None]}),
        (Address("b", 3), '{"street":"b","number":3}', {"street": "b", "number": 3}),
        (UUID(int=7), str(UUID(int=7)), str(UUID(int=7))),
        ("NUL \0 and half \ud83d", "NUL \0 and half \ud83d", "NUL \0 and half \ud83d"),
        (["half \ud83d"], '["half \\ud83d"]', ["half \ud83d"]),
        ({1: (2, 3)}, '{"1":[2,3]}', {"1": [2, 3]}),
    ],
)
@pytest.mark.parametrize("plain", [False, True])
async def test_a_result_is_text_for_the_model_and_json_for_the_record(
    value: Any, text: str, result: Any, plain: bool
) -> None:
    async def on_the_loop() -> Any:
        return value

    def in_a_thread() -> Any:
        return value

    outcome = await run(in_a_thread if plain else on_the_loop)

    assert (outcome.status, outcome.text, outcome.error) == ("done", text, None)
    assert loads(dumps(outcome.result)) == result
    assert outcome.latency_ms >= 0


@pytest.mark.req("EXEC-02")
async def test_what_is_no_number_in_json_is_null_to_the_model_and_kept_as_it_was() -> None:
    outcome = await run(lambda: [math.nan, math.inf])

    assert outcome.text == "[null,null]"
    assert math.isnan(loads(dumps(outcome.result))[0])


def cycle() -> list[Any]:
    """A list that contains itself."""
    ring: list[Any] = []
    ring.append(ring)
    return ring


def deep() -> Any:
    """A list in a list in a list."""
    value: Any = 1
    for _ in range(300):
        value = [value]
    return value


def object_of_no_kind() -> object:
    """What nobody can write down."""
    return object()


def stream() -> Iterator[int]:
    """What gives one after another."""
    yield 1


@pytest.mark.req("EXEC-02", "ENG-08")
@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda: b"\x00", "job failed: its result contains bytes, which are not JSON"),
        (lambda: {"a": [memoryview(b"x")]}, "its result contains bytes"),
        (object_of_no_kind, "its result cannot be encoded as JSON: Encoding objects of type object"),
        (stream, "its result cannot be encoded as JSON: Encoding objects of type generator"),
        (lambda: 10**5000, "its result cannot be encoded as JSON: Exceeds the limit"),
        (cycle, "its result is nested too deeply, or contains itself"),
        (deep, "the JSON value is nested too deeply"),
    ],
)
async def test_a_result_that_is_no_json_is_refused_clearly(function: Any, said: str) -> None:
    outcome = await run(function)

    assert outcome.status == "failed"
    assert said in outcome.text
    assert outcome.text == f"job failed: {outcome.error}"


@pytest.mark.req("EXEC-02")
async def test_more_output_than_the_model_may_read_is_cut_and_kept_whole_up_to_a_megabyte() -> None:
    small, large = "é" * 5_000, "é" * MAX_RESULT_BYTES

    some, much = await run(lambda: small, max_output_bytes=1000), await run(lambda: [large], max_output_bytes=1000)

    assert len(some.text.encode()) <= 1000
    assert some.text.startswith("é" * 450)
    assert some.text.endswith(f"[truncated: {10_000 - 2 * some.text.count('é')} of 10000 bytes are missing]")
    assert some.result == small
    assert len(much.text.encode()) <= 1000
    assert len(much.result.encode()) <= MAX_RESULT_BYTES
    assert "bytes are missing" in much.result


@pytest.mark.req("EXEC-02")
@given(st.text(), st.integers(0, 200))
def test_a_cut_text_is_whole_or_within_its_bytes(text: str, most: int) -> None:
    shortened = cut(text, most)

    size = len(text.encode(errors="surrogatepass"))
    assert shortened == text if size <= most else len(shortened.encode()) <= max(most, 60)


class Mute(Exception):
    """Cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError


def raising(error: BaseException) -> Any:
    """A plain function that fails in this way."""

    def fail() -> None:
        raise error

    return fail


@pytest.mark.req("EXEC-02")
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such\nparcel"), "ValueError: no such parcel"),
        (KeyError(), "KeyError"),
        (NotFound("there is no parcel 7", why="it was delivered", next="Ask for another."),
         "there is no parcel 7: it was delivered. Ask for another."),
        (Mute(), "Mute"),
        (ValueError("x" * 10_000), "ValueError: " + "x" * 488 + "…"),
        (StopIteration(), "RuntimeError: StopIteration: "),
        (SystemExit(3), "RuntimeError: SystemExit: 3"),
        (KeyboardInterrupt(), "RuntimeError: KeyboardInterrupt: "),
        (asyncio.CancelledError(), "it was cancelled"),
        (TimeoutError(), "TimeoutError"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("plain", [False, True])
async def test_whatever_a_tool_raises_is_a_failure_that_the_model_reads(
    error: BaseException, said: str, plain: bool
) -> None:
    async def on_the_loop() -> None:
        raise error

    outcome = await run(raising(error) if plain else on_the_loop)

    assert (outcome.status, outcome.result) == ("failed", None)
    assert (outcome.error or "").strip() == said.strip() or isinstance(error, StopIteration)
    assert outcome.text == f"job failed: {outcome.error}"
    assert "Traceback" not in outcome.text


@pytest.mark.req("EXEC-02", "EXEC-04")
@pytest.mark.parametrize(
    "said",
    [
        "cannot reach postgresql://ann:hunter22@db/x",
        "401 for Authorization: Bearer hunter22",
        "bad header {'authorization': 'Basic hunter22'}",
        "api_key=hunter22 is unknown",
        '{"password": "hunter22"}',
        "GET /x?token=hunter22&page=2",
        "key sk-proj-hunter22hunter22 was refused",
        "bearer hunter22",
    ],
)
async def test_secrets_in_an_exception_are_struck_out(said: str) -> None:
    outcome = await run(raising(RuntimeError(said)))

    assert "hunter22" not in outcome.text
    assert REDACTED in outcome.text


@pytest.mark.req("EXEC-02")
async def test_arguments_that_no_longer_fit_the_function_are_a_failure() -> None:
    outcome = await EXECUTOR.run(SHIP, {"parcel": 7}, RUN, timeout=5, max_output_bytes=100)

    assert (outcome.status, outcome.error) == ("failed", "the argument `parcel` is invalid, expected `str`, got `int`")


@pytest.mark.req("EXEC-02")
@pytest.mark.parametrize("whose", ["the caller's", "the tool's own"])
async def test_a_tool_that_takes_too_long_is_stopped(whose: str) -> None:
    stopped = asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    tool = tool_of(endless, timeout=0.05 if whose == "the tool's own" else 60)

    async with asyncio.timeout(5):
        outcome = await EXECUTOR.run(
            tool, {}, RUN, timeout=0.05 if whose == "the caller's" else 60, max_output_bytes=100
        )

    assert outcome.error == f"it exceeded its timeout of 0.05 seconds. {IN_DOUBT}"
    assert stopped.is_set()


@pytest.mark.req("EXEC-02")
async def test_a_tool_that_does_not_let_itself_be_stopped_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.execution.outcomes.GRACE", 0.05)
    go_on = asyncio.Event()

    async def stubborn() -> None:
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue

    async with asyncio.timeout(5):
        outcome = await run(stubborn, timeout=0.05)

    assert outcome.status == "failed"
    go_on.set()


@pytest.mark.req("EXEC-02")
async def test_a_thread_that_never_ends_is_left_behind_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    go_on, ended, before = threading.Event(), threading.Event(), count_abandoned()

    def blocking() -> None:
        go_on.wait(30)
        ended.set()

    with caplog.at_level(logging.WARNING):
        async with asyncio.timeout(5):
            outcome = await run(blocking, timeout=0.05)

    assert outcome.error == f"it exceeded its timeout of 0.05 seconds. {IN_DOUBT}"
    assert count_abandoned() == before + 1
    assert "abandoned a call of the tool job, which does not stop; 1 threads are" in caplog.text
    go_on.set()
    assert await asyncio.to_thread(ended.wait, 5)


@pytest.mark.req("EXEC-02", "AGENT-01")
async def test_who_cancels_the_caller_stops_the_tool() -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def endless() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with asyncio.timeout(5):
        calling = asyncio.create_task(run(endless))
        await started.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling

    assert stopped.is_set()


@pytest.mark.req("EXEC-05")
async def test_a_hundred_calls_at_once_each_know_their_own_run() -> None:
    async def whose() -> str:
        await asyncio.sleep(0)
        return current_run().key

    def in_a_thread() -> str:
        return current_run().key

    async def call(tool: Tool, key: str) -> str:
        of = Run("ann", "support", None, RUN.conversation_id, RUN.run_id, key, key)
        return (await EXECUTOR.run(tool, {}, of, timeout=10, max_output_bytes=100)).text

    tools = [tool_of(whose), tool_of(in_a_thread)]

    told = await asyncio.gather(*(call(tools[number % 2], f"key-{number}") for number in range(100)))

    assert told == [f"key-{number}" for number in range(100)]


@pytest.mark.req("EXEC-02")
async def test_a_tool_that_ends_the_process_does_not() -> None:
    outcome = await run(lambda: sys.exit("bye"))

    assert outcome.error == "RuntimeError: SystemExit: bye"


@pytest.mark.req("EXEC-02", "SAFE-04")
@pytest.mark.parametrize("said", ["a" * 200_000, "a-" * 100_000, "x://" + "y" * 200_000, "token" * 40_000])
async def test_a_long_reason_is_searched_for_secrets_in_no_time(said: str) -> None:
    async def chatty() -> None:
        raise RuntimeError(said)

    began = time.perf_counter()
    outcome = await run(chatty)

    assert time.perf_counter() - began < 2
    assert len(outcome.error or "") < 600


@pytest.mark.req("EXEC-02", "SAFE-02")
async def test_the_log_says_where_a_tool_failed_and_none_of_its_secrets(caplog: pytest.LogCaptureFixture) -> None:
    async def leaky() -> None:
        cause = ValueError("password=hunter2")
        raise RuntimeError("password=hunter2") from cause

    with caplog.at_level(logging.WARNING):
        await run(leaky)

    assert "hunter2" not in caplog.text.replace('"password=hunter2"', "")  # a line of the code, as it stands
    assert "in leaky" in caplog.text


@pytest.mark.req("EXEC-02", "SAFE-04")
async def test_a_tool_that_blocks_for_ever_is_called_no_more_when_too_many_are_left_behind() -> None:
    go_on, called = threading.Event(), 0

    def blocking() -> None:
        nonlocal called
        called += 1
        go_on.wait(60)

    tool = tool_of(blocking, name="jam")
    try:
        async with asyncio.timeout(30):
            outcomes = [
                await EXECUTOR.run(tool, {}, RUN, timeout=0.02, max_output_bytes=100) for _ in range(MOST_ABANDONED + 2)
            ]
            other = await run(lambda: "fine")
    finally:
        go_on.set()

    assert called == MOST_ABANDONED
    assert all("exceeded its timeout" in (outcome.error or "") for outcome in outcomes[:MOST_ABANDONED])
    assert all(f"{MOST_ABANDONED} earlier calls" in (outcome.error or "") for outcome in outcomes[MOST_ABANDONED:])
    assert other.text == "fine"


@pytest.mark.req("EXEC-02", "EXEC-05")
async def test_what_may_run_again_and_takes_too_long_leaves_nobody_in_doubt() -> None:
    async def endless() -> None:
        await asyncio.Event().wait()

    tool = tool_of(endless, idempotent=True)

    outcome = await EXECUTOR.run(tool, {}, RUN, timeout=0.05, max_output_bytes=100)

    assert outcome.error == "it exceeded its timeout of 0.05 seconds"


@pytest.mark.req("EXEC-02")
@pytest.mark.parametrize("count", [1, 5])
async def test_a_result_that_is_far_too_large_is_refused_before_it_is_copied(count: int) -> None:
    huge = "x" * (MAX_WEIGHT // count + 1)
    value = huge if count == 1 else {str(number): [huge] for number in range(count)}
    tracemalloc.start()

    outcome = await run(lambda: value)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (outcome.error or "").startswith("its result is too large: the limit is 64 MB")
    assert peak < 1_000_000


@pytest.mark.req("EXEC-02")
async def test_a_large_result_is_written_down_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bool] = []

    def note(value: object) -> bytes:
        written.append(threading.current_thread() is threading.main_thread())
        return render(value)

    monkeypatch.setattr("holdfast.execution.outcomes.render", note)

    small, large = await run(lambda: ["x"]), await run(lambda: ["x" * LARGE])

    assert (small.status, large.status) == ("done", "done")
    assert written[0] is True
    assert set(written[1:]) == {False}
