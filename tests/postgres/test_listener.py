import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import pytest

from holdfast.engine import Engine
from holdfast.postgres.database import Postgres, open_owner
from holdfast.postgres.listener import BURST, MERGE_PERIOD, RATE
from holdfast.postgres.options import Options
from tests.postgres.backends import Backends

LISTENING = "query ilike 'listen%' or query ilike 'unlisten%'"


async def notify(engine: Engine, channel: str) -> None:
    async with engine.postgres.owner() as owner:
        await owner.value("select pg_notify($1, '')", channel)


async def woken(wake: asyncio.Event) -> None:
    """Wait for a wake-up and use it up."""
    async with asyncio.timeout(10):
        await wake.wait()
    wake.clear()


async def test_a_notification_wakes_those_who_listen_to_its_channel_and_nobody_else(engine: Engine) -> None:
    postgres = engine.postgres
    async with postgres.listen("one") as first, postgres.listen("one") as second, postgres.listen("Two; x") as other:
        for wake in (first, second, other):
            await woken(wake)  # everyone is woken when the connection is made, to catch up

        await notify(engine, "one")

        await woken(first)
        await woken(second)
        assert not other.is_set()
        await notify(engine, "Two; x")
        await woken(other)


async def test_everyone_is_woken_to_catch_up_after_the_connection_was_lost(engine: Engine, backends: Backends) -> None:
    async with engine.postgres.listen("one") as first, engine.postgres.listen("two") as second:
        await woken(first)
        await woken(second)

        ended = await backends.end(LISTENING)

        assert ended == 1
        await woken(first)
        await woken(second)
        await notify(engine, "two")
        await woken(second)
        assert not first.is_set()


@pytest.mark.req("SAFE-04")
async def test_a_flood_of_notifications_is_a_few_wake_ups_and_the_last_is_heard(engine: Engine) -> None:
    wakes, first = 0, asyncio.Event()
    async with engine.postgres.listen("one") as wake, engine.postgres.owner() as owner, asyncio.timeout(60):
        await woken(wake)

        async def count() -> None:
            nonlocal wakes
            while True:
                await wake.wait()
                wake.clear()
                wakes += 1
                first.set()

        counting = asyncio.create_task(count())
        started = asyncio.get_running_loop().time()
        for _ in range(20):  # each its own transaction: those of one are told once
            await owner.value("select count(pg_notify('one', n::text)) from generate_series(1, 500) n")
        await first.wait()  # a busy machine may deliver it after the last was sent
        seconds = asyncio.get_running_loop().time() - started
        flooded = wakes
        counting.cancel()
        await asyncio.wait([counting])
        await notify(engine, "one")
        await woken(wake)

    assert 0 < flooded <= BURST + (RATE + 1 / MERGE_PERIOD) * (seconds + 1)


async def test_many_channels_share_one_connection(engine: Engine, backends: Backends) -> None:
    async with AsyncExitStack() as stack:
        wakes = {name: await stack.enter_async_context(engine.postgres.listen(name)) for name in map(str, range(300))}
        for wake in wakes.values():
            await woken(wake)

        await notify(engine, "299")

        await woken(wakes["299"])
        assert not wakes["0"].is_set()
        assert await backends.count("query ilike 'listen %'") == 1


async def test_who_comes_while_the_connection_is_being_made_is_heard_too(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with AsyncExitStack() as stack:
        wakes = [await stack.enter_async_context(engine.postgres.listen(f"first {number}")) for number in range(50)]
        async with asyncio.timeout(10):
            while not wakes[0].is_set():  # meanwhile the listener connects, and goes through the channels
                wakes.append(await stack.enter_async_context(engine.postgres.listen(f"channel {len(wakes)}")))
                await engine.database.now()
        wakes[-1].clear()

        await notify(engine, f"channel {len(wakes) - 1}")

        await woken(wakes[-1])
    assert caplog.records == []


async def test_a_channel_that_nobody_listens_to_any_more_is_given_up(engine: Engine, backends: Backends) -> None:
    async with engine.postgres.listen("stays") as stays:
        await woken(stays)
        async with engine.postgres.listen("goes") as goes, engine.postgres.listen("goes"):
            await notify(engine, "goes")
            await woken(goes)

        await backends.until("query ilike 'unlisten \"goes\"%'")

        async with engine.postgres.listen("goes") as again:
            await notify(engine, "goes")
            await woken(again)
        await notify(engine, "stays")
        await woken(stays)


async def test_listening_begins_when_the_server_comes_back(
    engine: Engine, open_postgres: Callable[..., Postgres], caplog: pytest.LogCaptureFixture
) -> None:
    url = engine.place.owner_url
    name = urlsplit(url).path.lstrip("/")
    async with open_owner(url.replace(name, "postgres"), Options()) as administrator:
        await administrator.script(f"alter database {name} with allow_connections false")
        async with open_postgres(connect_timeout=0.2).listen("one") as wake:
            async with asyncio.timeout(10):
                while not caplog.records:
                    await administrator.value("select 1")
            assert not wake.is_set()

            await administrator.script(f"alter database {name} with allow_connections true")

            await woken(wake)
            await notify(engine, "one")
            await woken(wake)
    assert "could not listen" in caplog.text
