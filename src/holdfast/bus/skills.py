"""Skills: functions that a worker runs for whoever asks, by name."""

import asyncio
import contextvars
import inspect
import math
import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

from holdfast.core.errors import InvalidInput, TimedOut

ATTEMPTS = 5  # how often a skill is tried, unless it or its invoker says otherwise

Function = Callable[..., Any]

_signature = cache(inspect.signature)


@dataclass(frozen=True, slots=True)
class CurrentCommand:
    """The command that is being done. Another attempt has the same correlation id: use it as an idempotency key."""

    correlation_id: str
    skill: str
    attempt: int
    headers: Mapping[str, str]


_current: ContextVar[CurrentCommand] = ContextVar("holdfast_current_command")


def current_command() -> CurrentCommand:
    """The command that the calling skill is doing."""
    try:
        return _current.get()
    except LookupError:
        raise InvalidInput("no command is being done here", next="Call it in a skill that a worker runs.") from None


@dataclass(frozen=True, slots=True)
class Skill:
    """A function under a name, and how it is run: `rate` is how many may start in a second, over all workers."""

    name: str
    function: Function
    rate: float | None = None
    attempts: int = ATTEMPTS
    timeout: float | None = None

    def __post_init__(self) -> None:
        wrong = _wrong(self)
        if wrong:
            raise InvalidInput(f"the skill {self.name!r:.200} cannot be declared", why=wrong)

    @property
    def is_async(self) -> bool:
        """Whether it runs on the event loop, and can be stopped; else it runs in a thread."""
        return inspect.iscoroutinefunction(self.function)

    async def run(self, command: CurrentCommand, arguments: Mapping[str, Any]) -> Any:
        """Call the function; InvalidInput if the arguments do not fit its signature."""
        try:
            bound = _signature(self.function).bind(**arguments)
        except TypeError as error:
            raise InvalidInput(f"the arguments do not fit the skill {self.name}", why=str(error)) from None
        _current.set(command)  # of this task alone
        if not self.is_async:
            return await _in_thread(lambda: self.function(*bound.args, **bound.kwargs))
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                return await self.function(*bound.args, **bound.kwargs)
        except TimeoutError:
            if not limit.expired():
                raise
            raise TimedOut(f"the skill {self.name} took too long", why=f"it has {self.timeout:g} seconds") from None


def _wrong(skill: Skill) -> str:
    """What keeps a skill from being declared."""
    if not isinstance(skill.name, str) or not 0 < len(skill.name) <= 200:  # pyright: ignore[reportUnnecessaryIsInstance]
        return "its name is not text of 1 to 200 characters"
    if not callable(skill.function):
        return "there is no function to call"
    parameters = _signature(skill.function).parameters.values()
    nameless = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)]
    if nameless:
        return f"arguments come by name, and {nameless[0]} has none"
    if skill.rate is not None and not (math.isfinite(skill.rate) and skill.rate > 0):
        return f"its rate is {skill.rate}, and should be above zero"
    if skill.attempts < 1:
        return f"it has {skill.attempts} attempts, and needs one"
    if skill.timeout is not None and not skill.timeout > 0:
        return f"its time-out is {skill.timeout}, and should be above zero"
    if skill.timeout is not None and not skill.is_async:
        return "it has a time-out, and a plain function cannot be stopped: make it async"
    return ""


async def _in_thread(call: Callable[[], Any]) -> Any:
    """What `call` gives, from a thread of its own; a process may end without waiting for it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(call)
        except BaseException as raised:  # noqa: BLE001 - whatever it was, it is the caller's
            # A future cannot carry this one.
            error = RuntimeError(f"StopIteration: {raised}") if isinstance(raised, StopIteration) else raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, name="holdfast skill", daemon=True).start()
    return await done
