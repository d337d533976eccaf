"""Outcomes: how calls of tools end, and what the model reads of them.

Whatever goes wrong with a call is a text for the model: it reads it and does better, or says so.
"""

import asyncio
import logging
import re
import traceback
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from http import HTTPStatus
from time import perf_counter
from typing import Any, Literal, cast
from uuid import UUID

import msgspec

from holdfast.core.errors import HoldfastError, InvalidInput, TimedOut, TooLarge
from holdfast.core.text import dumps, render
from holdfast.core.threads import abandoned, in_worker
from holdfast.core.wires import HTTP_STATUS
from holdfast.execution.runner import IN_DOUBT, JSON, Result, Vanished
from holdfast.execution.trimming import trimmed
from holdfast.mcp.content import Block
from holdfast.skills.client import InputRequired
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

MAX_RESULT_BYTES = 1024 * 1024  # of a result that is kept whole, however little of it the model reads
MAX_WHOLE_BYTES = 10_000_000  # of what is kept aside
MAX_REASON = 500  # characters of what an exception says
MAX_SEARCHED = 4 * MAX_REASON  # and of those that secrets are looked for in: it takes its time
NOTE_BYTES = 200  # of what says where the whole is
MAX_WEIGHT = 64 * 1024 * 1024  # of a result: characters, and ITEM for whatever has some
LARGE = 256 * 1024  # and of one that is written down in a thread, so that nobody waits for it
ITEM = 4
GRACE = 1.0  # seconds that a cancelled tool has to tidy up
TEXT = "text/plain; charset=utf-8"

NOTHING = "(done, without a result)"
IN_LOG = "the log has the reason under it."
UNKNOWN = "It is not known whether this call took effect: what ran it stopped meanwhile."
STRUCK = "[secret]"

Status = Literal["done", "failed", "unknown"]

log = logging.getLogger(__name__)

_SECRET = re.compile(
    r"(\w{1,40}://)[^\s/@]+(?=@)"  # who logs in, in an address
    r"|([\w-]{0,40}(?:password|passwd|secret|token|api[_-]?key|authorization)[\"']?\s*[:=]\s*[\"']?(?:bearer\s|basic\s)?)[^\s\"',;&]+"
    r"|(\bbearer\s+)[\w.~+/=-]+"
    r"|()\b(?:sk|pk|rk|ghp|gho|xox[abp]|AKIA|eyJ)[-_A-Za-z0-9.]{12,}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended: what the model reads, the result as JSON, and what went wrong.

    `unknown`: whoever ran it stopped meanwhile, and it may have taken effect. `whole` is the answer as it came, where
    the result is only a part of it: to be kept aside. `code` is that of the error, where one was raised, and `outward`
    what is told of it to those who are not to know the reason. `content` are the blocks that it gave, where it gave
    some. `shortened`: the text is not all of the result.
    """

    status: Status
    text: str
    result: Any
    error: str | None
    latency_ms: float
    whole: bytes | None = None
    content_type: str = JSON
    code: str | None = None
    outward: str | None = None
    content: tuple[Block, ...] | None = None
    shortened: bool = False

    @classmethod
    def refused(cls, text: str, *, code: str | None = None) -> "Outcome":
        """A call that was not made, and why."""
        return cls("failed", text, None, cut(text, MAX_REASON), 0.0, code=code)

    def kept_as(self, execution: UUID) -> "Outcome":
        """The same, where the model reads which execution has the whole."""
        if self.whole is None:
            return self
        size, kind = len(self.whole), self.content_type
        note = f"[all {size:,} bytes ({kind:.60}) are kept as the output of the execution {execution}]"
        return replace(self, text=f"{self.text}\n{note}")


async def outcome_of(
    tool: Tool,
    run: Run,
    work: Callable[[], Awaitable[Result]],
    *,
    timeout: float,
    max_output_bytes: int,
    max_whole_bytes: int = MAX_WHOLE_BYTES,
    ours: bool = False,
) -> Outcome:
    """How the work of a call ends, in at most so many seconds.

    Whatever it does is an outcome; only the caller's cancellation is raised, and that it waits for its client. What
    does not end by then is left behind. `ours`: no program's code is run, and so it ends when it is told to.
    """
    started = perf_counter()
    try:
        next = "" if tool.idempotent else IN_DOUBT
        if ours:
            result: Result = await _in_time(work, timeout=timeout, next=next)
        else:
            result = await finished(work, timeout=timeout, name=f"the tool {tool.name}", next=next)
        text, kept, whole, kind, short = await off_loop(result.value, lambda: _told(result, max_output_bytes))
    except Failed as failed:
        error = failed.error
        if isinstance(error, InputRequired):
            raise error from None
    except Exception as raised:  # noqa: BLE001 - of a result that cannot be told
        error = raised
    else:
        status: Status = "failed" if result.failed else "done"
        reason = cut(text, MAX_REASON) if result.failed else None
        told = f"{tool.name} failed: {text}" if result.failed else text
        aside = None if whole is None else whole[:max_whole_bytes]
        return Outcome(
            status, told, kept, reason, _since(started), aside, kind, content=result.content, shortened=short
        )
    if isinstance(error, Vanished):
        return Outcome("unknown", UNKNOWN, None, str(error), _since(started))
    return _failed(tool, run, error, _since(started))


def _failed(tool: Tool, run: Run, error: BaseException, latency_ms: float) -> Outcome:
    reason, trace = reason_of(error), trace_of(error)
    log.warning("the tool %s failed in the run %s, call %s: %s%s", tool.name, run.run_id, run.call_id, reason, trace)
    code = error.code if isinstance(error, HoldfastError) else HoldfastError.code
    status, outward = HTTP_STATUS.get(code, HTTPStatus.BAD_REQUEST), None  # a program may have codes of its own
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        outward = f"{tool.name} failed: something broke here. Report it with the id {run.call_id}: {IN_LOG}"
    elif status > HTTPStatus.INTERNAL_SERVER_ERROR and isinstance(error, HoldfastError):
        outward = f"{tool.name} failed: {reason_of(HoldfastError(error.what, next=error.next))}"
    return Outcome("failed", f"{tool.name} failed: {reason}", None, reason, latency_ms, code=code, outward=outward)


class Failed(Exception):
    """A program's own code failed, by whatever it raised."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


async def finished(work: Callable[[], Awaitable[Any]], *, timeout: float | None, name: str, next: str = "") -> Any:
    """What a program's own code gives, in at most so many seconds; `Failed` whatever it raises.

    Only the caller's cancellation is raised as such. What does not end when it is told to is left behind; `next` is
    what to do then.
    """
    task = asyncio.ensure_future(_guarded(work))
    try:
        await asyncio.wait({task}, timeout=timeout)
        in_time = task.done()
    finally:
        await _end(task, name)
    if not in_time:
        raise Failed(_late(timeout, next))
    try:
        return task.result()
    except BaseException as error:  # the code's, whatever it is: nothing is awaited here
        raise Failed(error) from error


async def _in_time(work: Callable[[], Awaitable[Any]], *, timeout: float, next: str) -> Any:
    """What our own code gives, without the cost of a task."""
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            return await work()
    except Exception as error:
        raise Failed(_late(timeout, next) if limit.expired() else error) from error


def _late(timeout: float | None, next: str) -> TimedOut:
    return TimedOut(f"it took longer than the {timeout:g} seconds that it has", next=next)


async def _guarded(work: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await work()
    except (SystemExit, KeyboardInterrupt) as error:  # a task would end the whole process with it
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


async def _end(task: "asyncio.Task[Any]", name: str) -> None:
    """Stop what is still at work, and give it a moment to tidy up; what does not stop is left behind."""
    if task.done():
        return
    task.cancel()
    before = abandoned()
    await asyncio.wait({task}, timeout=GRACE)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody else asks for it
    if not task.done() or abandoned() > before:
        log.warning("a call of %s was left behind; %d threads are", name, abandoned())


async def off_loop(value: Any, work: Callable[[], Any]) -> Any:
    """What `work` makes of a value; it is done beside the event loop where the value is large."""
    if weight_of(value, LARGE) <= LARGE:
        return work()
    return await in_worker(work)


def _told(result: Result, most: int) -> tuple[str, Any, bytes | None, str, bool]:
    """What the model reads of a result, what is kept of it, and the whole where that is more, with its kind.

    At last, whether the model reads less than all of it.
    """
    plain, data = (result.value, _bytes_of(result.value)) if result.plain else _written(result.value)
    kept, whole, kind = plain, result.whole, result.content_type
    if len(data) > MAX_RESULT_BYTES:
        kept = _cut(data, MAX_RESULT_BYTES)
        if whole is None:
            whole, kind = data, TEXT if isinstance(plain, str) else JSON
    dumps({"result": kept})  # what could not be stored is refused here
    room = most if whole is None else max(most // 2, most - NOTE_BYTES)
    short = len(data) > room
    if not short:
        text = plain if isinstance(plain, str) else NOTHING if plain is None else data.decode()
    else:
        text = _cut(data, room) if isinstance(plain, str) else render(trimmed(plain, room)).decode()
    return text, kept, whole, kind, short


def plain_of(value: Any) -> Any:
    """A result as JSON has it; InvalidInput that says why, where it cannot be."""
    return _written(value)[0]


def _written(value: Any) -> tuple[Any, bytes]:
    """A result as JSON has it, and its bytes: those of JSON, or of a text."""
    try:
        plain = msgspec.to_builtins(value, str_keys=True, builtin_types=(bytes, bytearray, memoryview))
        if weight_of(plain, MAX_WEIGHT) > MAX_WEIGHT:
            why = f"a result has at most {MAX_WEIGHT // 1024**2} MB"
            raise TooLarge("its result is too large", why=why, next="It has to give less, or say where it is.")
        return plain, _bytes_of(plain)
    except RecursionError:
        raise InvalidInput("its result is nested too deep, or contains itself") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput("its result cannot be written as JSON", why=str(error)) from None


def _bytes_of(plain: Any) -> bytes:
    return plain.encode(errors="surrogatepass") if isinstance(plain, str) else render(plain)


def weight_of(value: Any, most: int) -> int:
    """How much a value takes to write down, counted until it is more than `most`; InvalidInput for bytes."""
    weight, waiting = 0, [value]
    while waiting and weight <= most:
        each = waiting.pop()
        if isinstance(each, str):
            weight += len(each)
        elif isinstance(each, dict | list | tuple):
            items = cast(Collection[Any], each.values() if isinstance(each, dict) else each)
            weight += ITEM * len(items)
            if weight <= most:
                waiting.extend(items)
        elif isinstance(each, bytes | bytearray | memoryview):
            raise InvalidInput("its result has bytes in it, which are no JSON", next="It has to give text.")
    return weight


def cut(text: str, most: int) -> str:
    """A text of at most so many bytes, which says how many are missing."""
    data = text.encode(errors="surrogatepass")
    return text if len(data) <= most else _cut(data, most)


def _cut(data: bytes, most: int) -> str:
    note = "\n[cut here: {} of {} bytes are missing]"
    kept = data[: max(0, most - len(note) - 2 * len(str(len(data))))].decode(errors="ignore")
    return kept + note.format(len(data) - len(kept.encode()), len(data))


def reason_of(error: BaseException) -> str:
    """What went wrong, without a trace and without secrets."""
    if isinstance(error, asyncio.CancelledError):
        return "it was cancelled"
    try:
        said = " ".join(str(error)[:MAX_SEARCHED].split())
    except Exception:  # noqa: BLE001 - an exception may be unable even to say what it is
        said = ""
    if not isinstance(error, HoldfastError):
        said = f"{type(error).__name__}: {said}" if said else type(error).__name__
    said = _SECRET.sub(lambda found: next(filter(None, found.groups()), "") + STRUCK, said)
    return said if len(said) <= MAX_REASON else said[:MAX_REASON] + "…"


def trace_of(error: BaseException) -> str:
    """Where something went wrong, for a log: lines of code, and nothing of what they worked on."""
    if isinstance(error, HoldfastError | asyncio.CancelledError):
        return ""
    return "\n" + "".join(traceback.format_tb(error.__traceback__)).rstrip()


def _since(started: float) -> float:
    return 1000 * (perf_counter() - started)
