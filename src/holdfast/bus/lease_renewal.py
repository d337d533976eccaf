"""Renews the leases of claimed commands in its own thread: a handler that blocks the event loop loses none."""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Self

from holdfast.bus.completions import cancelled_channel
from holdfast.bus.notifications import until
from holdfast.core.ids import TenantId
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database, Postgres
from holdfast.postgres.sql import statements

sql = statements(__name__)
log = logging.getLogger(__name__)

Tokens = dict[str, int]  # tokens by correlation id


class LeaseRenewal:
    """Renews leases, and reports commands that are lost: cancelled, or claimed by another worker.

    `on_lost` is called in the event loop in which the keeper was started.
    """

    def __init__(
        self, connect: Callable[[], Postgres], tenant: TenantId, lease: timedelta, on_lost: Callable[[str, int], None]
    ) -> None:
        self._connect = connect
        self._tenant = tenant
        self._lease = lease
        self._on_lost = on_lost
        self._held: Tokens = {}
        self._lock = threading.Lock()
        self._ending = False

    async def __aenter__(self) -> Self:
        self._worker = asyncio.get_running_loop()
        self._started, self._ended = self._worker.create_future(), asyncio.Event()
        threading.Thread(target=self._run_thread, name="holdfast keeper", daemon=True).start()
        await self._started
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ending = True
        with suppress(RuntimeError):  # the thread has ended already
            self._loop.call_soon_threadsafe(self._woken.set)
        await self._ended.wait()  # not in a thread of the loop's pool: handlers may occupy all of them

    def hold(self, correlation_id: str, token: int) -> None:
        """Renew the lease of this command from now on."""
        with self._lock:
            self._held[correlation_id] = token

    def drop(self, correlation_id: str, token: int) -> None:
        """Stop renewing the lease of this command."""
        with self._lock:
            if self._held.get(correlation_id) == token:
                del self._held[correlation_id]

    def _run_thread(self) -> None:
        try:
            asyncio.run(self._run())
        except Exception as error:
            log.exception("the renewal of command leases stopped")
            self._call_worker(_resolve, self._started, error)
        self._call_worker(self._ended.set)

    def _call_worker(self, call: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the worker's event loop is closed
            self._worker.call_soon_threadsafe(call, *arguments)

    async def _run(self) -> None:
        postgres = self._connect()
        database = postgres.tenant(self._tenant)
        try:
            async with postgres.listen(cancelled_channel(self._tenant)) as self._woken:
                self._loop = asyncio.get_running_loop()
                self._call_worker(_resolve, self._started, None)
                while not self._ending:
                    await until(self._woken, await self._renew(database))
        finally:
            await postgres.close()

    async def _renew(self, database: Database) -> float:
        """Renew all leases. Return the seconds until the next renewal."""
        lease = self._lease.total_seconds()
        with self._lock:
            held = dict(self._held)
        try:
            renewed = await renew_leases(database, held, self._lease) if held else set[str]()
        except Exception as error:  # noqa: BLE001 - after any error, the next renewal may still be in time
            log.warning("could not renew leases of commands; retrying: %s", error)
            return min(lease / 10, 1)
        for correlation_id, token in held.items():
            if correlation_id not in renewed:
                self.drop(correlation_id, token)
                self._call_worker(self._on_lost, correlation_id, token)
        return lease / 3


def _resolve(future: "asyncio.Future[None]", error: Exception | None) -> None:
    if not future.done():
        future.set_result(None) if error is None else future.set_exception(error)


async def renew_leases(database: Database, held: Tokens, lease: timedelta) -> set[str]:
    """Renew the leases of these commands. Return the ids of those that are still held."""
    rows = await database.all(sql("renew_commands"), [store(id) for id in held], list(held.values()), lease)
    return {restore(row["correlation_id"]) for row in rows}
