"""Calls of tools: the arguments that a model wrote, the call itself, and what the model reads of it.

Whatever goes wrong with a call is a text for the model: it reads it and does better, or says so.
"""

import asyncio
import logging
import re
import traceback
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal, cast

import msgspec

from holdfast.agents.tools import Run, Tool
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.text import dumps, parse, render
from holdfast.core.threads import abandoned

MAX_ARGUMENTS_BYTES = 1024 * 1024
MAX_RESULT_BYTES = 1024 * 1024  # of a result that is kept whole, however little of it the model reads
MAX_ECHO = 200  # characters of what the model wrote
MAX_REASON = 500  # characters of what an exception says
MAX_SEARCHED = 4 * MAX_REASON  # and of those that secrets are looked for in: it takes its time
GRACE = 1.0  # seconds that a cancelled tool has to tidy up

NOTHING = "(done, without a result)"
STRUCK = "[secret]"

log = logging.getLogger(__name__)

_MISFIT = re.compile(r"(?P<what>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_SECRET = re.compile(
    r"(\w{1,40}://)[^\s/@]+(?=@)"  # who logs in, in an address
    r"|([\w-]{0,40}(?:password|passwd|secret|token|api[_-]?key|authorization)[\"']?\s*[:=]\s*[\"']?(?:bearer\s|basic\s)?)[^\s\"',;&]+"
    r"|(\bbearer\s+)[\w.~+/=-]+"
    r"|()\b(?:sk|pk|rk|ghp|gho|xox[abp]|AKIA|eyJ)[-_A-Za-z0-9.]{12,}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a tool is not called, for the model to read."""

    text: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended: what the model reads, the result as JSON, and what went wrong."""

    status: Literal["done", "failed"]
    text: str
    result: Any
    error: str | None
    latency_ms: float


def unknown_tool(name: str, known: Collection[str]) -> Refusal:
    """There is no such tool."""
    there = f"The tools are {', '.join(sorted(known))}." if known else "There are no tools."
    return Refusal(f"there is no tool {name[:MAX_ECHO]!r}. {there}")


def parse_arguments(tool: Tool, raw: str) -> dict[str, Any] | Refusal:
    """The arguments that a model wrote, if the tool takes them; nothing at all is an empty object."""
    try:
        given: object = parse(raw.encode(errors="surrogatepass"), limit=MAX_ARGUMENTS_BYTES) if raw.strip() else {}
        dumps({"tool_calls": [{"arguments": given}]})  # as they are kept
    except HoldfastError as error:
        return _refusal(tool, f"its arguments cannot be read, {error.what}: {error.why}", "Write one JSON object.")
    if not isinstance(given, dict):
        return _refusal(tool, f"its arguments are {_kind(given)}, not an object", "Write one JSON object.")
    arguments = cast(dict[str, Any], given)
    try:
        tool.converted(arguments)
    except msgspec.ValidationError as error:
        return _misfit(tool, str(error))
    return arguments


async def execute(
    tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float, max_output_bytes: int
) -> Outcome:
    """Call a tool, and wait no longer than `timeout`, or than the tool's own.

    Whatever it does is an outcome; only the caller's cancellation is raised. What does not end by then is left behind.
    """
    started = perf_counter()
    limit = timeout if tool.timeout is None else min(timeout, tool.timeout)
    try:
        text, kept = _told(
            await finished(lambda: tool.run(run, arguments), timeout=limit, name=f"the tool {tool.name}"),
            max_output_bytes,
        )
    except Failed as failed:
        error = failed.error
    except Exception as raised:  # noqa: BLE001 - of a result that cannot be told
        error = raised
    else:
        return Outcome("done", text, kept, None, _since(started))
    reason = reason_of(error)
    log.warning("the tool %s failed in the run %s: %s%s", tool.name, run.run_id, reason, trace_of(error))
    return Outcome("failed", f"{tool.name} failed: {reason}", None, reason, _since(started))


class Failed(Exception):
    """A program's own code failed, by whatever it raised."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


async def finished(work: Callable[[], Awaitable[Any]], *, timeout: float | None, name: str) -> Any:
    """What a program's own code gives, in at most so many seconds; `Failed` whatever it raises.

    Only the caller's cancellation is raised as such. What does not end when it is told to is left behind.
    """
    task = asyncio.ensure_future(_guarded(work))
    try:
        await asyncio.wait({task}, timeout=timeout)
        in_time = task.done()
    finally:
        await _end(task, name)
    if not in_time:
        raise Failed(InvalidInput(f"it took longer than the {timeout:g} seconds that it has"))
    try:
        return task.result()
    except BaseException as error:  # the code's, whatever it is: nothing is awaited here
        raise Failed(error) from error


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


def _told(result: Any, most: int) -> tuple[str, Any]:
    """What the model reads of a result, and what is kept of it."""
    try:
        plain = msgspec.to_builtins(result, str_keys=True, builtin_types=(bytes, bytearray, memoryview))
        _refuse_bytes(plain)
        text = plain if isinstance(plain, str) else NOTHING if plain is None else render(plain).decode()
    except RecursionError:
        raise InvalidInput("its result is nested too deep, or contains itself") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput("its result cannot be written as JSON", why=str(error)) from None
    size = len(text.encode(errors="surrogatepass"))
    kept = plain if size <= MAX_RESULT_BYTES else cut(text, MAX_RESULT_BYTES)
    dumps({"result": kept})  # what could not be stored is refused here
    return cut(text, most), kept


def _refuse_bytes(plain: Any) -> None:
    level = [plain]
    while level:
        if any(isinstance(each, bytes | bytearray | memoryview) for each in level):
            raise InvalidInput("its result has bytes in it, which are no JSON", next="It has to give text.")
        level = [inner for outer in level for inner in _items(outer)]


def _items(value: Any) -> Collection[Any]:
    if isinstance(value, dict):
        return cast(dict[str, Any], value).values()
    return cast(list[Any], value) if isinstance(value, list | tuple) else ()


def cut(text: str, most: int) -> str:
    """A text of at most so many bytes, which says how many are missing."""
    data = text.encode(errors="surrogatepass")
    if len(data) <= most:
        return text
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


def _misfit(tool: Tool, message: str) -> Refusal:
    """What msgspec says of arguments that do not fit, in words for a model."""
    found = _MISFIT.fullmatch(message)
    what, path = (found["what"], found["path"] or "") if found else (message, "")
    where = path.lstrip(".")
    if unknown := _UNKNOWN.fullmatch(what):
        name = f"{where}.{unknown[1]}".lstrip(".")
        names = ", ".join(tool.parameters["properties"]) or "none"
        rule = _shape(tool, where) if where else f"Its arguments: {names}."
        return _refusal(tool, f"it has no argument `{name:.{MAX_ECHO}}`", rule)
    if missing := _MISSING.fullmatch(what):
        name = f"{where}.{missing[1]}".lstrip(".")
        return _refusal(tool, f"the argument `{name}` is missing", _shape(tool, name))
    rule = f"{what[:1].lower()}{what[1:]}"
    return _refusal(tool, f"the argument `{where:.60}` is wrong, {rule:.140}", _shape(tool, where))


def _shape(tool: Tool, path: str) -> str:
    """What an argument has to look like, in short."""
    name = re.split(r"[.\[]", path, maxsplit=1)[0]
    schema = tool.parameters["properties"].get(name, {})
    schema = tool.parameters.get("$defs", {}).get(schema.get("$ref", "").rpartition("/")[2], schema)
    shown = render({key: value for key, value in schema.items() if key not in ("title", "description")}).decode()
    return f"`{name:.60}` takes {shown[:MAX_ECHO]}{'…' if len(shown) > MAX_ECHO else ''}."


def _refusal(tool: Tool, why: str, next: str) -> Refusal:
    why = " ".join(why.split())
    return Refusal(f"{tool.name} was not called: {why[: 2 * MAX_ECHO]}. {next}")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a truth value"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "a number"


def _since(started: float) -> float:
    return 1000 * (perf_counter() - started)
