"""Threads for blocking functions: `run_in_thread` starts one per call, `run_in_worker` runs all in one."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from holdfast.core.errors import Unavailable

Result = TypeVar("Result")

_WORKER = ThreadPoolExecutor(1, thread_name_prefix="holdfast worker")


class ThreadCall(threading.Thread):
    """A call in a daemon thread. It is `abandoned` when its caller was cancelled."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        super().__init__(target=work, name=name, daemon=True)
        self.abandoned = False


async def run_in_worker(call: Callable[[], Result]) -> Result:
    """Run a call that would block the event loop in the worker thread, and return its result.

    There is one worker thread. With several, the event loop would wait for each of them to release the interpreter
    lock. Calls queue, so each should take 100 ms at most.
    """
    return await asyncio.get_running_loop().run_in_executor(_WORKER, call)


async def run_in_thread(call: Callable[[], Any], *, name: str, most_abandoned: int | None = None) -> Any:
    """Run a call in its own thread, and return its result. If the caller is cancelled, the thread is abandoned.

    Raises Unavailable if `most_abandoned` abandoned calls of the same name still run.
    """
    if most_abandoned is not None and count_abandoned(name) >= most_abandoned:
        raise Unavailable(
            "the function is not called",
            why=f"{most_abandoned} earlier calls timed out and are still running",
            next="Try again later.",
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
        except BaseException as raised:  # noqa: BLE001 - the caller gets every exception
            error = raised
            if isinstance(raised, StopIteration | GeneratorExit):  # a future rejects the one, a task the other
                error = RuntimeError(f"{type(raised).__name__}: {raised}")
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    thread = ThreadCall(work, name)
    thread.start()
    try:
        return await done
    except asyncio.CancelledError:
        thread.abandoned = True
        raise


def count_abandoned(name: str | None = None) -> int:
    """Count the abandoned calls that still run, of a name or all."""
    return sum(
        isinstance(thread, ThreadCall) and thread.abandoned and (name is None or thread.name == name)
        for thread in threading.enumerate()
    )
