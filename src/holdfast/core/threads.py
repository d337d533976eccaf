"""Threads for plain functions: `in_thread` gives each call its own, `in_worker` has all calls take turns in one."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from holdfast.core.errors import Unavailable

Result = TypeVar("Result")

_WORKER = ThreadPoolExecutor(1, thread_name_prefix="holdfast worker")


class Call(threading.Thread):
    """A call in a thread; `abandoned` when nobody waits for its result any more. A process may end without it."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        super().__init__(target=work, name=name, daemon=True)
        self.abandoned = False


async def in_worker(call: Callable[[], Result]) -> Result:
    """What `call` gives, from the thread for work that would hold up the event loop.

    There is one such thread: while several compute, the event loop waits for each of them before it gets the
    interpreter's lock. Calls wait for each other, so each should take 100 ms at most.
    """
    return await asyncio.get_running_loop().run_in_executor(_WORKER, call)


async def in_thread(call: Callable[[], Any], *, name: str, most_abandoned: int | None = None) -> Any:
    """What `call` gives, from a thread of its own; whoever is cancelled leaves the thread behind.

    Where `most_abandoned` of the same name still run that were left behind, no other is begun: Unavailable.
    """
    if most_abandoned is not None and abandoned(name) >= most_abandoned:
        raise Unavailable(
            "it is not called now",
            why=f"{most_abandoned} calls of it were left behind, and still run",
            next="Try later.",
        )
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
            error = raised
            if isinstance(raised, StopIteration | GeneratorExit):  # a future cannot carry the one, a task not the other
                error = RuntimeError(f"{type(raised).__name__}: {raised}")
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    thread = Call(work, name)
    thread.start()
    try:
        return await done
    except asyncio.CancelledError:
        thread.abandoned = True
        raise


def abandoned(name: str | None = None) -> int:
    """How many calls still run that nobody waits for: those of a name, or all."""
    return sum(
        isinstance(thread, Call) and thread.abandoned and (name is None or thread.name == name)
        for thread in threading.enumerate()
    )
