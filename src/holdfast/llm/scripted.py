"""A model that answers from a script: for tests, demonstrations, and reproducing the failures of models.

A script is a list of answers, or a file with one JSON object per line:

    {"text": "Let me look.", "calls": [{"name": "track", "arguments": {"parcel": "AB-1"}}]}
    {"when": "(?i)hello", "text": "Good morning.", "repeat": true}
    {"fail": {"status": 429, "message": "slow down", "retry_after": 1}}
    {"text": "It broke off he", "chunks": 4, "fail": {"after": 3}}

The model gives the first answer, in order, whose `when` matches the user's last message. Each answer is used once, or
any number of times with `repeat`. A file that begins with `{"by": "step"}` works differently: of the answers that
match, the model gives the one whose position is the number of assistant messages since the user's last. So a process
that takes over in the middle of a turn continues where the other stopped.
"""

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from holdfast.core.errors import BadSetting, ModelFailed
from holdfast.core.text import render
from holdfast.llm.model import (
    CallPiece,
    ModelRequest,
    Piece,
    Stop,
    StopReason,
    TextPiece,
    ThinkingPiece,
    TokenUsage,
    ToolCall,
    WritingPiece,
)

MAX_REQUESTS = 1000
MAX_SCRIPT_BYTES = 16 * 1024 * 1024


class ScriptedFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How an answer fails: like a server that returns `status`, or without one like a connection that breaks."""

    status: int | None = None
    message: str = "the script says so"
    after: int = 0  # chunks before the failure
    retry_after: float = 0.0
    retryable: bool | None = None


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call. Arguments that are text are sent unchanged, and may be invalid JSON."""

    name: str
    arguments: dict[str, Any] | str = {}
    id: str = ""


class ScriptedUsage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The token usage that the answer reports."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


class ScriptEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One answer. The text and each call's arguments arrive in `chunks` pieces, with `delay` seconds before each."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    when: str | None = None
    repeat: bool = False
    chunks: int = 1
    delay: float = 0.0
    stall: float = 0.0  # seconds of silence, once
    stall_after: int = 0  # chunks before the silence
    fail: ScriptedFailure | None = None
    usage: ScriptedUsage | None = None
    reason: StopReason | None = None


Given = ScriptEntry | Mapping[str, Any] | str
By = Literal["order", "step"]


class _Top(msgspec.Struct, forbid_unknown_fields=True):
    by: By


class ScriptedModel:
    """Answers from a script: a list, a file, or a function of the request. `requests` holds the latest requests."""

    def __init__(
        self,
        script: Sequence[Given] | Path | Callable[[ModelRequest], Given],
        *,
        by: By = "order",
        name: str = "scripted",
    ) -> None:
        self.requests: deque[ModelRequest] = deque(maxlen=MAX_REQUESTS)
        self._name = name
        self._source = script
        self._by: By = by
        self._used: set[int] = set()

    @property
    def name(self) -> str:
        """The name of the model in the settings."""
        return self._name

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        """Stream the answer."""
        self.requests.append(request)
        if isinstance(self._source, Path) and "_script" not in vars(self):  # read it once, in a thread
            await asyncio.to_thread(lambda: self._script)
        entry = self._choose(request)
        sent = 0
        for piece in _pieces(entry):
            await self._pause(entry, sent)
            yield piece
            sent += 1
        await self._pause(entry, sent, last=True)
        for number, call in enumerate(entry.calls):
            arguments = call.arguments if isinstance(call.arguments, str) else render(call.arguments).decode()
            yield CallPiece(ToolCall(call.id or f"call_{len(request.messages)}_{number}", call.name, arguments))
        if entry.usage is not None:
            yield TokenUsage(entry.usage.input_tokens, entry.usage.output_tokens, entry.usage.cached_tokens)
        yield Stop(entry.reason or ("tools" if entry.calls else "end"), self._name)

    def _choose(self, request: ModelRequest) -> ScriptEntry:
        if callable(self._source):
            return _entry(self._source(request), self._name)
        by, entries = self._script
        user_text = next((m.content for m in reversed(request.messages) if m.role == "user"), "")
        matching = [n for n, entry in enumerate(entries) if entry.when is None or re.search(entry.when, user_text)]
        if by == "step":
            step = steps_since_user(request)
            if step < len(matching):
                return entries[matching[step]]
            if matching and entries[matching[-1]].repeat:
                return entries[matching[-1]]
        else:
            for n in matching:
                if entries[n].repeat or n not in self._used:
                    self._used.add(n)
                    return entries[n]
        raise ModelFailed(
            f"the model {self._name} has no answer",
            model=self._name,
            retryable=False,
            why="no remaining answer of its script matches",
            next="Add an answer, or set `repeat` in the last one.",
        )

    @cached_property
    def _script(self) -> tuple[By, list[ScriptEntry]]:
        if isinstance(self._source, Path):
            return _read(self._source, self._by, self._name)
        assert not callable(self._source)
        return self._by, [_entry(given, self._name) for given in self._source]

    async def _pause(self, entry: ScriptEntry, sent: int, *, last: bool = False) -> None:
        if entry.stall and (sent == entry.stall_after or (last and sent < entry.stall_after)):
            await asyncio.sleep(entry.stall)
        if entry.delay and not last:
            await asyncio.sleep(entry.delay)
        failure = entry.fail
        if failure is not None and (sent == failure.after or last):
            status = failure.status
            passing = status is None or status in (408, 409, 429) or status >= 500
            raise ModelFailed(
                f"the model {self._name} {'broke off its answer' if status is None else f'returned {status}'}",
                model=self._name,
                retryable=passing if failure.retryable is None else failure.retryable,
                status=status,
                retry_after=failure.retry_after,
                why=failure.message,
            )


def steps_since_user(request: ModelRequest) -> int:
    """Count the assistant's messages since the user's last message."""
    steps = 0
    for message in reversed(request.messages):
        if message.role == "user":
            break
        steps += message.role == "assistant"
    return steps


def _pieces(entry: ScriptEntry) -> Iterator[Piece]:
    for piece in _split(entry.thinking, entry.chunks):
        yield ThinkingPiece(piece)
    for piece in _split(entry.text, entry.chunks):
        yield TextPiece(piece)
    for _ in entry.calls:
        for _ in range(entry.chunks):
            yield WritingPiece()


def _split(text: str, chunks: int) -> Iterator[str]:
    size = max(1, -(-len(text) // max(1, chunks)))
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _read(path: Path, by: By, name: str) -> tuple[By, list[ScriptEntry]]:
    try:
        if not path.is_file() and path.exists():
            raise _unusable(name, "it is not a file")
        if path.stat().st_size > MAX_SCRIPT_BYTES:
            raise _unusable(name, f"it has more than {MAX_SCRIPT_BYTES} bytes")
        lines = path.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise BadSetting(
            f"the script {path} cannot be read", why=why, next="Check llm.model.", key="llm.model"
        ) from None
    entries: list[ScriptEntry] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        try:
            given: object = msgspec.json.decode(line)
            if not entries and isinstance(given, dict) and "by" in cast(dict[str, object], given):
                by = msgspec.convert(given, _Top).by
                continue
        except msgspec.MsgspecError as error:
            raise _unusable(where, str(error)) from None
        entries.append(_entry(cast(object, given), where))
    return by, entries


def _entry(given: object, where: str) -> ScriptEntry:
    if isinstance(given, ScriptEntry):
        return given
    try:
        entry = ScriptEntry(text=given) if isinstance(given, str) else msgspec.convert(given, ScriptEntry)
        re.compile(entry.when or "")
    except (msgspec.ValidationError, re.error) as error:
        raise _unusable(where, str(error)) from None
    return entry


def _unusable(where: str, why: str) -> BadSetting:
    next = "Use the fields text, calls, when, repeat, chunks, delay, stall, fail and usage."
    return BadSetting(f"the script {where} is invalid", why=why, next=next, key="llm.model")
