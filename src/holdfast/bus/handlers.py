"""Handlers: named functions that workers run to carry out commands. `@app.skill` declares one."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from holdfast.bus.command_events import LARGEST, MAX_NAME, is_whole
from holdfast.core.errors import InvalidInput, TimedOut
from holdfast.core.threads import run_in_thread

ATTEMPTS = 5  # default, unless the handler or the caller says otherwise

LEAST, MOST = 1e-9, 1e9  # limits of a rate (starts per second) and of a timeout (seconds)

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class CurrentCommand:
    """The command that is being carried out. Retries have the same correlation id: use it as an idempotency key."""

    correlation_id: str
    skill: str
    attempt: int
    headers: Mapping[str, str]


_current: ContextVar[CurrentCommand] = ContextVar("holdfast_current_command")


def current_command() -> CurrentCommand:
    """Return the command that the calling handler carries out."""
    try:
        return _current.get()
    except LookupError:
        raise InvalidInput("no command is running here", next="Call this in a handler that a worker runs.") from None


@dataclass(frozen=True, slots=True)
class Handler:
    """A handler: a named function and how to run it. `rate` limits its starts per second over all workers."""

    name: str
    function: Function
    rate: float | None = None
    attempts: int = ATTEMPTS
    timeout: float | None = None
    signature: inspect.Signature = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        signature = _signature(self.function)
        wrong = _find_error(self, signature)
        if signature is None or wrong:
            raise InvalidInput(f"the declaration of the skill {self.name!r:.200} is invalid", why=wrong)
        object.__setattr__(self, "signature", signature)

    @property
    def is_async(self) -> bool:
        """Whether it runs on the event loop and can be cancelled; otherwise it runs in a thread."""
        call = getattr(self.function, "__call__", None)  # noqa: B004 - for an object with an async `__call__`
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)

    async def run(self, command: CurrentCommand, arguments: Mapping[str, Any]) -> Any:
        """Call the function. Raise InvalidInput if the arguments do not fit its signature."""
        try:
            bound = self.signature.bind(**arguments)
        except TypeError as error:
            raise InvalidInput(f"the arguments do not match the skill {self.name}", why=str(error)) from None
        _current.set(command)  # only in this task
        if not self.is_async:
            result = await run_in_thread(lambda: self.function(*bound.args, **bound.kwargs), name="holdfast skill")
            return await result if inspect.isawaitable(result) else result
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                return await self.function(*bound.args, **bound.kwargs)
        except TimeoutError:
            if not limit.expired():
                raise
            raise TimedOut(f"the skill {self.name} timed out", why=f"its timeout is {self.timeout:g} seconds") from None


def _signature(function: object) -> inspect.Signature | None:
    try:
        return inspect.signature(function) if callable(function) else None
    except (TypeError, ValueError):  # some functions that are not written in Python have none
        return None


def _find_error(skill: Handler, signature: inspect.Signature | None) -> str:
    """Return what is wrong with a declaration, or ""."""
    if not isinstance(skill.name, str) or not 0 < len(skill.name) <= MAX_NAME:  # pyright: ignore[reportUnnecessaryIsInstance]
        return f"its name is not a string of 1 to {MAX_NAME} characters"
    if not callable(skill.function):
        return "it has no function to call"
    if signature is None:
        return "the names of its arguments are unknown; wrap it in a function that names them"
    nameless = [p.name for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)]
    if nameless:
        return f"arguments are passed by name, and {nameless[0]} cannot be"
    if skill.rate is not None and not _is_in_range(skill.rate):
        return f"its rate is not a number from {LEAST:g} to {MOST:g}"
    if not is_whole(skill.attempts, 1, LARGEST):
        return f"`attempts` is not an integer from 1 to {LARGEST}"
    if skill.timeout is not None and not _is_in_range(skill.timeout):
        return f"its timeout is not a number from {LEAST:g} to {MOST:g}"
    if skill.timeout is not None and not skill.is_async:
        return "it has a timeout, but a plain function cannot be stopped; make it async"
    return ""


def _is_in_range(number: object) -> bool:
    return isinstance(number, int | float) and LEAST <= number <= MOST
