"""Listens to the MCP servers of all sources: when one says that its lists have changed, the source is checked."""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic
from typing import Any

import msgspec

from holdfast.core.background import PeriodicJob, end_task
from holdfast.core.errors import HoldfastError
from holdfast.core.shares import set_holder
from holdfast.execution.mcp.http import SessionGone
from holdfast.execution.mcp.runner import McpBackends, with_renewal
from holdfast.mcp.protocol import McpError
from holdfast.postgres.database import Database, Postgres, Row
from holdfast.postgres.sql import statements
from holdfast.skills.request import Backend

LASTING = 60.0  # seconds after which a stream that ends is no failure
LOOK = 2.0  # seconds between two looks for sources that are new, changed or gone
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds before a stream that has ended is opened again
MOST = 200  # servers to which one process listens

Backends = Callable[[Database], McpBackends]
Source = tuple[Any, str]  # a tenant, and the name of its source

sql = statements(__name__)
log = logging.getLogger(__name__)


class McpListener(PeriodicJob):
    """Keeps a stream open with each server over HTTP that announces changes. Programs announce them on their pipes.

    Every process listens by itself. Several of them may ask for the same check, which is done once.
    """

    def __init__(self, postgres: Postgres, backends: Backends) -> None:
        super().__init__("listener to MCP servers", pause=LOOK, first=0.5)
        self._postgres = postgres
        self._backends = backends
        self._streams: dict[Source, tuple[Mapping[str, Any], asyncio.Task[None]]] = {}

    async def __aexit__(self, *error: object) -> None:
        await super().__aexit__(*error)
        for _, task in self._streams.values():
            await end_task(task)

    async def step(self) -> None:
        """Listen to new and changed sources, and no longer to those that are gone."""
        rows = await self._postgres.system.all(sql("announced_sources"), MOST)
        wanted = {(row["host_id"], row["name"]): row for row in rows}
        for source, (backend, task) in [*self._streams.items()]:
            if source not in wanted or wanted[source]["backend"] != backend:
                await end_task(task)
                del self._streams[source]
        for source, row in wanted.items():
            if source not in self._streams:
                task = asyncio.create_task(self._listen(row), name=f"holdfast listens to {row['name']}")
                self._streams[source] = (row["backend"], task)

    async def _listen(self, row: Row) -> None:
        """Listen until nobody wants it."""
        set_holder(row["host_id"], None)
        backends = self._backends(self._postgres.tenant(row["host_id"]))
        backend = msgspec.structs.replace(msgspec.convert(row["backend"], Backend), source=row["name"])
        failures = 0
        while True:
            began = monotonic()
            try:
                upstream, _ = await backends.upstream(backend)
                await with_renewal(upstream, partial(backends.servers.listen, lists=row["announces"]))
            except (HoldfastError, McpError, SessionGone, TimeoutError) as error:
                log.info("the stream of the source %s has ended: %s", row["name"], error)
            except Exception:
                log.exception("internal error: the source %s cannot be listened to; retrying later", row["name"])
            failures = 1 if monotonic() - began >= LASTING else failures + 1
            await asyncio.sleep(min(FIRST_PAUSE * 2 ** min(failures - 1, 10), LONGEST_PAUSE) * (0.8 + random.random()))
