"""An engine that can be called from any event loop, and from code without one.

An engine belongs to the event loop that opened it. Frameworks call from other loops, from threads and from synchronous
code. `SharedEngine` passes their calls to the loop of the engine. Given an address instead of an engine, it opens an
engine in a background thread at the first use. All users of an address in the process share that engine.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, NamedTuple, NoReturn, Self, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import uvloop

from holdfast.core.errors import InvalidInput, ShuttingDown, Unavailable
from holdfast.engine import Engine, open_engine

SCHEME = "holdfast"
CLOSING = 10  # seconds for an engine in a background thread to close when the process ends

Result = TypeVar("Result")
Work = Callable[[Engine], Coroutine[Any, Any, Result]]


class EngineAddress(NamedTuple):
    """The database of an engine (by default that of the settings), and the tenant."""

    url: str | None = None
    data: Path | None = None
    tenant: str | None = None


def parse_address(text: str) -> EngineAddress:
    """Parse an address. In each form, `?tenant=acme` names the tenant.

    `postgresql://…` and `holdfast://user:password@host/database` name a database. `holdfast:///folder` is the embedded
    server in that data folder. `holdfast://` alone is the database of the settings.
    """
    try:
        parts = urlsplit(text)
        parameters = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        _refuse("it is not a URL, or its parameters do not have the form `name=value`")
    tenant = dict(parameters).get("tenant")
    others = [parameter for parameter in parameters if parameter[0] != "tenant"]
    if parts.scheme not in (SCHEME, "postgresql", "postgres"):
        _refuse(f"its scheme is {parts.scheme!r}")
    if parts.netloc or parts.scheme != SCHEME:
        if tenant is None and parts.scheme != SCHEME:
            return EngineAddress(text)
        query = urlencode(others, quote_via=quote, safe="/")
        return EngineAddress(parts._replace(scheme="postgresql", query=query).geturl(), None, tenant)
    folder = unquote(parts.path)
    if others or parts.fragment or folder[:1] not in ("", "/"):
        _refuse("a data folder must be an absolute path, with no parameter other than `tenant`")
    return EngineAddress(None, Path(folder) if folder.strip("/") else None, tenant)


class SharedEngine:
    """An engine that can be called from any thread and any event loop."""

    def __init__(self, engine: Engine | None, address: EngineAddress) -> None:
        self._engine = engine
        self._address = address
        self._host: EngineThread | None = None  # from the first call until `close`

    @classmethod
    def of(cls, engine_or_address: Engine | str | None, tenant: str | None = None) -> "SharedEngine":
        """Wrap an open engine, or the engine at an address. None means the database of the settings."""
        if isinstance(engine_or_address, Engine):
            engine = engine_or_address if tenant is None else engine_or_address.tenant(tenant)
            return cls(engine, EngineAddress())
        address = parse_address(engine_or_address or f"{SCHEME}://")
        return cls(None, address if tenant is None else address._replace(tenant=tenant))

    async def run(self, work: Work[Result]) -> Result:
        """Run `work` on the loop of the engine and return its result. On that loop itself, call it directly.

        If the caller is cancelled, the work is cancelled too, and this returns only when the work has ended: it has no
        effect afterwards.
        """
        engine = self._engine
        if engine is None:
            opened = self._engine_thread().engine
            engine = self._tenant_engine(
                opened.result() if opened.done() else await asyncio.shield(asyncio.wrap_future(opened))
            )
        if asyncio.get_running_loop() is engine.loop:
            return await work(engine)
        call = EngineTask(engine, work)
        try:
            await asyncio.shield(asyncio.wrap_future(call.ended))
        except asyncio.CancelledError:
            call.cancel()
            await asyncio.wrap_future(call.ended)
            raise
        return call.result()

    def run_sync(self, work: Work[Result]) -> Result:
        """Run `work` like `run`, for synchronous code."""
        engine = self._engine
        if engine is None:
            engine = self._tenant_engine(self._engine_thread().engine.result())
        if _current_loop() is engine.loop:
            raise InvalidInput(
                "the call would deadlock",
                why="it blocks the event loop that the engine runs on",
                next="Call the async method, call from another thread, or pass an address instead of the engine.",
            )
        call = EngineTask(engine, work)
        try:
            call.ended.result()
        except BaseException:  # an interrupt, such as Ctrl-C
            call.cancel()
            raise
        return call.result()

    async def close(self) -> None:
        """Release the engine. An engine that was opened for an address is closed with its last user."""
        if self._host is not None:
            await asyncio.to_thread(self.close_sync)

    def close_sync(self) -> None:
        """Release the engine like `close`, for synchronous code."""
        host, self._host = self._host, None
        if host is not None:
            host.release()

    def _engine_thread(self) -> "EngineThread":
        with _lock:
            if self._host is None or not self._host.usable:
                self._host = EngineThread.at(self._address._replace(tenant=None))
            return self._host

    def _tenant_engine(self, engine: Engine) -> Engine:
        return engine if self._address.tenant is None else engine.tenant(self._address.tenant)


class EngineTask(Generic[Result]):
    """A task on the loop of an engine, started from another thread or loop."""

    def __init__(self, engine: Engine, work: Work[Result]) -> None:
        if not engine.loop.is_running():
            raise Unavailable(
                "the engine cannot be called",
                why="the event loop that it was opened on is not running",
                next="Keep that loop running, or pass an address instead of the engine.",
            )
        self.ended: Future[None] = Future()
        self._engine = engine
        self._work = work
        self._task: asyncio.Task[Result] | None = None
        engine.loop.call_soon_threadsafe(self._start)

    def cancel(self) -> None:
        """Cancel the task. It has stopped when `ended` is done."""
        self._engine.loop.call_soon_threadsafe(lambda: self._task and self._task.cancel())

    def result(self) -> Result:
        """Return the result of the task, which must have ended."""
        assert self._task is not None
        if self._task.cancelled():
            raise ShuttingDown("the engine was closed", why="its owner or its last user closed it")
        return self._task.result()

    def _start(self) -> None:
        self._task = self._engine.loop.create_task(self._do())
        self._task.add_done_callback(lambda _: self.ended.set_result(None))

    async def _do(self) -> Result:
        return await self._work(self._engine)


class EngineThread:
    """An engine in a background thread, shared by all users of its address."""

    def __init__(self, address: EngineAddress) -> None:
        self.engine: Future[Engine] = Future()
        self._address = address
        self._users = 0
        self._process = os.getpid()
        self._loop = uvloop.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._live, name="holdfast", daemon=True)
        self._thread.start()

    @classmethod
    def at(cls, address: EngineAddress) -> "EngineThread":
        """Return the host of an address, and count one more user."""
        with _lock:
            host = _hosts.get(address)
            if host is None or not host.usable:
                host = _hosts[address] = cls(address)
            host._users += 1
            return host

    @property
    def usable(self) -> bool:
        """Whether it can be used: it did not fail to open, and the process was not forked since it was created."""
        failed = self.engine.done() and self.engine.exception() is not None
        return self._process == os.getpid() and not failed

    def release(self) -> None:
        """Count one user less. The last one closes the engine."""
        with _lock:
            self._users -= 1
            if self._users > 0 or not self.usable:
                return
            if _hosts.get(self._address) is self:
                del _hosts[self._address]
        self.stop()

    def stop(self, timeout: float | None = None) -> None:
        """Close the engine, and wait until it is closed."""
        with suppress(RuntimeError):  # the loop has ended already
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(timeout)

    def _live(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        try:
            async with open_engine(self._address.url, data=self._address.data) as engine:
                self.engine.set_result(engine)
                await self._stopped.wait()
        except Exception as error:
            if self.engine.done():
                raise
            self.engine.set_exception(error)
        unfinished = asyncio.all_tasks() - {asyncio.current_task()}
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)


_hosts: dict[EngineAddress, EngineThread] = {}
_lock = threading.RLock()


@atexit.register
def _close_all() -> None:
    for host in list(_hosts.values()):
        if host.usable:
            host.stop(CLOSING)


def _current_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _refuse(why: str) -> NoReturn:
    raise InvalidInput(
        "the address is invalid",  # not shown: it may contain a password
        why=why,
        next="Write it like `holdfast://`, `holdfast:///data/folder` or `postgresql://user:password@host/database`.",
    )


class EngineUser:
    """The part of a framework's service that releases its engine."""

    def __init__(self, hosted: SharedEngine) -> None:
        self._hosted = hosted

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Release the engine. An engine that was passed in stays open."""
        await self._hosted.close()
