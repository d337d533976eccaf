"""Wake-ups: after the commit, many as one, and only for those who are meant."""

import asyncio
from datetime import timedelta
from typing import cast

import pytest

from holdfast.bus.notifications import Notifications, channel, until
from holdfast.engine import Engine
from holdfast.postgres.database import PooledStatements

pytestmark = pytest.mark.req("BUS-01")


class Counted(PooledStatements):
    """The system's statements, counted."""

    def __init__(self, system: PooledStatements) -> None:
        self._system = system
        self.sent: list[list[str]] = []
        self.hold = asyncio.Event()

    async def run(self, statement: str, *args: object) -> int:
        """Count, wait, and send."""
        channels = cast(list[str], args[0])
        self.sent.append(sorted(channels))
        await self.hold.wait()
        return await self._system.run(statement, *args)


def test_channels_differ_by_every_name_and_by_where_one_ends() -> None:
    names = [("topic", "t", "a"), ("topic", "t", "b"), ("group", "t", "a"), ("topic", "u", "a"), ("topic", "ta", "")]

    channels = {channel(*each) for each in names}

    assert len(channels) == len(names)
    assert all(name.startswith("holdfast_") and len(name) < 63 for name in channels)
    assert channel("\ud800") == channel("\ud800")


async def test_a_listener_is_woken_and_no_other_is(engine: Engine) -> None:
    notifications = Notifications(engine.postgres.system)
    async with engine.postgres.listen("holdfast_a") as a, engine.postgres.listen("holdfast_b") as b:
        await _settled(notifications, a, b)

        notifications.send("holdfast_a")
        await notifications.close()
        async with asyncio.timeout(10):
            await a.wait()

        assert not b.is_set()


async def test_a_wake_up_of_a_transaction_is_sent_when_it_has_committed(engine: Engine) -> None:
    counted = Counted(engine.postgres.system)
    counted.hold.set()
    notifications = Notifications(counted)

    with pytest.raises(KeyError):  # noqa: PT012 - a transaction is several statements
        async with engine.transaction() as tx:
            notifications.send("holdfast_never", tx=tx)
            raise KeyError
    async with engine.transaction() as tx:
        notifications.send("holdfast_a", tx=tx)
        assert counted.sent == []
    await notifications.close()

    assert counted.sent == [["holdfast_a"]]


async def test_what_is_due_while_one_is_sent_goes_as_one(engine: Engine) -> None:
    counted = Counted(engine.postgres.system)
    notifications = Notifications(counted)

    notifications.send("holdfast_a")
    await asyncio.sleep(0)
    for _ in range(100):
        notifications.send("holdfast_b", "holdfast_c")
        await asyncio.sleep(0)
    counted.hold.set()
    await notifications.close()

    assert counted.sent == [["holdfast_a"], ["holdfast_b", "holdfast_c"]]


async def test_a_database_that_is_away_fails_nobody_who_wakes_others(engine: Engine) -> None:
    await engine.postgres.close()
    notifications = Notifications(engine.postgres.system)

    notifications.send("holdfast_a")
    await notifications.close()

    notifications.send("holdfast_a")
    await notifications.close()


async def test_a_waiter_wakes_by_the_event_or_by_the_time() -> None:
    woken = asyncio.Event()
    loop = asyncio.get_running_loop()

    started = loop.time()
    await until(woken, 0.05)
    slept = loop.time() - started
    woken.set()
    await until(woken, timedelta(hours=1).total_seconds())

    assert 0.04 < slept < 5
    assert not woken.is_set(), "and waits anew the next time"


async def _settled(notifications: Notifications, *events: asyncio.Event) -> None:
    """Wait until the listener is connected: it wakes everyone then."""
    async with asyncio.timeout(10):
        for event in events:
            await event.wait()
            event.clear()
