"""Outcomes: how tool calls end, and what the model reads of them.

Every failure of a call becomes a text for the model, which can correct the call or report the failure.
"""

import asyncio
import logging
import re
import traceback
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from time import perf_counter
from typing import Any, Literal, cast
from uuid import UUID

import msgspec

from holdfast.core.errors import HoldfastError, InvalidInput, TimedOut, TooLarge
from holdfast.core.text import dumps, render
from holdfast.core.threads import count_abandoned, run_in_worker
from holdfast.core.wires import HTTP_STATUS
from holdfast.execution.redaction import REDACTED
from holdfast.execution.runner import IN_DOUBT, JSON, OutcomeUnknown, Result
from holdfast.execution.trimming import trimmed
from holdfast.mcp.content import Block
from holdfast.skills.client import InputRequired
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

MAX_RESULT_BYTES = 1024 * 1024  # of a result in its row; a larger one is cut there, and stored whole separately
MAX_WHOLE_BYTES = 10_000_000  # of an output that is stored separately
MAX_REASON = 500  # characters of an exception's message
MAX_SEARCHED = 4 * MAX_REASON  # characters of it that are searched for secrets, which is slow
NOTE_BYTES = 200  # of the note that says where the whole output is
MAX_WEIGHT = 64 * 1024 * 1024  # of a result: its characters, and ITEM for each item of a list or object
LARGE = 256 * 1024  # weight above which a result is encoded in a thread, so that it does not block the event loop
ITEM = 4
GRACE = 1.0  # seconds that a cancelled tool has to clean up
TEXT = "text/plain; charset=utf-8"

NOTHING = "(done, without a result)"
IN_LOG = "the server's log has the details."
UNKNOWN = "It is unknown whether this call took effect: the process that ran it stopped."

Status = Literal["done", "failed", "unknown"]

log = logging.getLogger(__name__)

_CONTAINERS = (dict, list, tuple)  # a tuple of types is checked three times as fast as their union
_BYTES = (bytes, bytearray, memoryview)
_SECRET = re.compile(
    r"(\w{1,40}://)[^\s/@]+(?=@)"  # the credentials in a URL
    r"|([\w-]{0,40}(?:password|passwd|secret|token|api[_-]?key|authorization)[\"']?\s*[:=]\s*[\"']?(?:bearer\s|basic\s)?)[^\s\"',;&]+"
    r"|(\bbearer\s+)[\w.~+/=-]+"
    r"|()\b(?:sk|pk|rk|ghp|gho|xox[abp]|AKIA|eyJ)[-_A-Za-z0-9.]{12,}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended: the text for the model, the result as JSON, and the error.

    `unknown`: the process that ran it stopped, and it may have taken effect. `whole` is the complete answer if the
    result is only a part of it; it is stored separately. `code` is the error's code, if one was raised, and `outward`
    its text for callers that must not see the reason. `content` are the content blocks that the tool returned, if any.
    `shortened`: the text is not all of the result. `refused`: the call was not made. `cause` is the exception that the
    call raised. `mcp` is the result of an MCP server, unchanged.
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
    refused: bool = False
    mcp: Mapping[str, Any] | None = None
    cause: BaseException | None = field(default=None, compare=False, repr=False)

    @classmethod
    def refusal(cls, text: str, *, code: str | None = None) -> "Outcome":
        """Return the outcome of a call that was not made, with the reason."""
        return cls("failed", text, None, cut(text, MAX_REASON), 0.0, code=code, refused=True)

    def with_output_note(self, execution: UUID) -> "Outcome":
        """Add a note to the text that names the execution with the whole output, if there is more than the result."""
        if self.whole is None:
            return self
        size, kind = len(self.whole), self.content_type
        note = f"[all {size:,} bytes ({kind:.60}) are stored as the output of the execution {execution}]"
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
    """Run the work of a call for at most `timeout` seconds, and return its outcome.

    Every error becomes an outcome. Only the caller's cancellation and `InputRequired` are raised. Work that does not
    stop in time is abandoned. `ours`: the work runs no code of an app, so it always stops when it is cancelled.
    """
    started = perf_counter()
    try:
        next = "" if tool.idempotent else IN_DOUBT
        if ours:
            result: Result = await _in_time(work, timeout=timeout, next=next)
        else:
            result = await run_app_code(work, timeout=timeout, name=f"the tool {tool.name}", next=next)
        text, stored, whole, kind, short = await off_loop(
            result.value, lambda: _render_result(result, max_output_bytes)
        )
    except Failed as failed:
        error = failed.error
        if isinstance(error, InputRequired):
            raise error from None
    except Exception as raised:  # noqa: BLE001 - the result cannot be encoded
        error = raised
    else:
        status: Status = "failed" if result.failed else "done"
        reason = cut(text, MAX_REASON) if result.failed else None
        message = f"{tool.name} failed: {text}" if result.failed else text
        output = None if whole is None else whole[:max_whole_bytes]
        return Outcome(
            status,
            message,
            stored,
            reason,
            _since(started),
            output,
            kind,
            content=result.content,
            shortened=short,
            mcp=result.mcp,
        )
    if isinstance(error, OutcomeUnknown):
        return Outcome("unknown", UNKNOWN, None, str(error), _since(started))
    return _failed_outcome(tool, run, error, _since(started))


def _failed_outcome(tool: Tool, run: Run, error: BaseException, latency_ms: float) -> Outcome:
    reason, trace = reason_of(error), trace_of(error)
    place = f"call {run.call_id}" if run.run_id is None else f"run {run.run_id}, call {run.call_id}"
    log.warning("the tool %s failed (%s): %s%s", tool.name, place, reason, trace)
    code = error.code if isinstance(error, HoldfastError) else HoldfastError.code
    status, outward = HTTP_STATUS.get(code, HTTPStatus.BAD_REQUEST), None  # an app may have its own codes
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        outward = f"{tool.name} failed: internal error. Report it with the id {run.call_id}: {IN_LOG}"
    elif status > HTTPStatus.INTERNAL_SERVER_ERROR and isinstance(error, HoldfastError):
        outward = f"{tool.name} failed: {reason_of(HoldfastError(error.what, next=error.next))}"
    message = f"{tool.name} failed: {reason}"
    return Outcome("failed", message, None, reason, latency_ms, code=code, outward=outward, cause=error)


class Failed(Exception):
    """An app's code failed. `error` is the exception that it raised."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


async def run_app_code(work: Callable[[], Awaitable[Any]], *, timeout: float | None, name: str, next: str = "") -> Any:
    """Run an app's code for at most `timeout` seconds, and return its result. Raise `Failed` for every error.

    Only the caller's cancellation is raised as such. Code that does not stop when it is cancelled is abandoned. `next`
    is the advice in the time-out's error.
    """
    task = asyncio.ensure_future(_without_exit(work))
    try:
        await asyncio.wait({task}, timeout=timeout)
        in_time = task.done()
    finally:
        await _end(task, name)
    if not in_time:
        raise Failed(_timeout_error(timeout, next))
    try:
        return task.result()
    except BaseException as error:  # raised by the code: nothing is awaited here
        raise Failed(error) from error


async def _in_time(work: Callable[[], Awaitable[Any]], *, timeout: float, next: str) -> Any:
    """Run the engine's own code within a time limit, without the cost of a task."""
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            return await work()
    except Exception as error:
        raise Failed(_timeout_error(timeout, next) if limit.expired() else error) from error


def _timeout_error(timeout: float | None, next: str) -> TimedOut:
    return TimedOut(f"it exceeded its timeout of {timeout:g} seconds", next=next)


async def _without_exit(work: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await work()
    except (SystemExit, KeyboardInterrupt) as error:  # raised in a task, it would end the process
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


async def _end(task: "asyncio.Task[Any]", name: str) -> None:
    """Cancel a task that still runs, and give it time to clean up. A task that does not stop is abandoned."""
    if task.done():
        return
    task.cancel()
    before = count_abandoned()
    await asyncio.wait({task}, timeout=GRACE)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody else retrieves it
    if not task.done() or count_abandoned() > before:
        log.warning("abandoned a call of %s, which does not stop; %d threads are abandoned", name, count_abandoned())


async def off_loop(value: Any, work: Callable[[], Any]) -> Any:
    """Return the result of `work` on a value. For a large value, run it in a thread."""
    if weight_of(value, LARGE) <= LARGE:
        return work()
    return await run_in_worker(work)


def _render_result(result: Result, most: int) -> tuple[str, Any, bytes | None, str, bool]:
    """Return the text for the model, the result to store, the whole output if that is more, and its content type.

    The last value says whether the text is less than the whole result.
    """
    plain, data = (result.value, _bytes_of(result.value)) if result.plain else _to_json(result.value)
    stored, whole, kind = plain, result.whole, result.content_type
    if len(data) > MAX_RESULT_BYTES:
        stored = _cut(data, MAX_RESULT_BYTES)
        if whole is None:
            whole, kind = data, TEXT if isinstance(plain, str) else JSON
    dumps({"result": stored})  # raises if it cannot be stored
    room = most if whole is None else max(most // 2, most - NOTE_BYTES)
    short = len(data) > room
    if not short:
        text = plain if isinstance(plain, str) else NOTHING if plain is None else data.decode()
    else:
        text = _cut(data, room) if isinstance(plain, str) else render(trimmed(plain, room)).decode()
    return text, stored, whole, kind, short


def plain_of(value: Any) -> Any:
    """Convert a result to JSON types. Raise InvalidInput with the reason if that is impossible."""
    return _to_json(value)[0]


def _to_json(value: Any) -> tuple[Any, bytes]:
    """Convert a result to JSON types. Return it with its bytes: a string's own, or those of its JSON."""
    try:
        plain = msgspec.to_builtins(value, str_keys=True, builtin_types=(bytes, bytearray, memoryview))
        if weight_of(plain, MAX_WEIGHT) > MAX_WEIGHT:
            why = f"the limit is {MAX_WEIGHT // 1024**2} MB"
            raise TooLarge("its result is too large", why=why, next="Return less, or a reference to the data.")
        return plain, _bytes_of(plain)
    except RecursionError:
        raise InvalidInput("its result is nested too deeply, or contains itself") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput("its result cannot be encoded as JSON", why=str(error)) from None


def _bytes_of(plain: Any) -> bytes:
    return plain.encode(errors="surrogatepass") if isinstance(plain, str) else render(plain)


def weight_of(value: Any, most: int) -> int:
    """Return the weight of a value: what it takes to encode it. Stop above `most`. Raise InvalidInput for bytes."""
    weight, waiting = 0, [value]
    while waiting and weight <= most:
        each = waiting.pop()
        if isinstance(each, str):
            weight += len(each)
        elif isinstance(each, _CONTAINERS):
            items = cast("Collection[Any]", each.values() if isinstance(each, dict) else each)
            weight += ITEM * len(items)
            if weight <= most:
                waiting.extend(items)
        elif isinstance(each, _BYTES):
            raise InvalidInput("its result contains bytes, which are not JSON", next="Return text.")
    return weight


def cut(text: str, most: int) -> str:
    """Cut a text to at most `most` bytes, with a note that says how many are missing."""
    data = text.encode(errors="surrogatepass")
    return text if len(data) <= most else _cut(data, most)


def _cut(data: bytes, most: int) -> str:
    note = "\n[truncated: {} of {} bytes are missing]"
    head = data[: max(0, most - len(note) - 2 * len(str(len(data))))].decode(errors="ignore")
    return head + note.format(len(data) - len(head.encode()), len(data))


def reason_of(error: BaseException) -> str:
    """Return what went wrong, without a traceback and without secrets."""
    if isinstance(error, asyncio.CancelledError):
        return "it was cancelled"
    try:
        text = " ".join(str(error)[:MAX_SEARCHED].split())
    except Exception:  # noqa: BLE001 - `__str__` of an exception may raise, too
        text = ""
    if not isinstance(error, HoldfastError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    text = _SECRET.sub(lambda found: next(filter(None, found.groups()), "") + REDACTED, text)
    return text if len(text) <= MAX_REASON else text[:MAX_REASON] + "…"


def trace_of(error: BaseException) -> str:
    """Return the traceback of an error for a log: lines of code, without the values that they worked on."""
    if isinstance(error, HoldfastError | asyncio.CancelledError):
        return ""
    return "\n" + "".join(traceback.format_tb(error.__traceback__)).rstrip()


def _since(started: float) -> float:
    return 1000 * (perf_counter() - started)
