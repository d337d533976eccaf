"""Floods: one caller who sends too much leaves the others their places. `test_long_floods.py` has the long forms."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from holdfast import App
from tests.server.conftest import make_key
from tests.server.floods import Target, app_of, locked_appends, slow_chats, slow_logins, sockets
from tests.server.wire import PATIENCE, Site, Wire

pytestmark = pytest.mark.req("SAFE-06")


@pytest.fixture
def released() -> asyncio.Event:
    """Have slow messages be answered."""
    return asyncio.Event()


@pytest.fixture
def app(released: asyncio.Event) -> App:
    """A program whose agent takes its time over slow messages."""
    return app_of(released)


async def others(site: Site) -> list[str]:
    """Keys of another user of the tenant, and of another tenant."""
    return [await make_key(site.engine, "ann"), await make_key(site.engine, "bob", tenant="acme")]


@asynccontextmanager
async def connected(site: Site, address: str) -> AsyncGenerator[Wire]:
    """A connection from another of this machine's addresses."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port, local_addr=(address, 0))
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()


async def test_slow_anonymous_connections_lock_nobody_out(site: Site) -> None:
    key = await make_key(site.engine, "eve")
    async with slow_logins(Target(site.port, key, site.engine), 300) as slow:
        refused = await slow[-1].reply()

        statuses = [(await site.ask("GET", "/api/me", key=key)).status for _ in range(20)]
        page = await site.ask("GET", "/login")
        alive = await site.ask("GET", "/healthz")

    assert statuses == 20 * [200]
    assert (page.status, alive.status) == (200, 200)
    assert (refused.status, refused.code) == (429, "overloaded")
    assert refused.json()["details"]["limit"].startswith("sign-ins")
    assert "limits.sign_ins" in refused.json()["next"]


@pytest.mark.parametrize("limits", [{"sign_ins_per_minute": 3}])
async def test_an_address_tries_only_so_many_links_a_minute(site: Site, limits: dict[str, Any]) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    replies = [await site.ask("POST", "/login", body=b"link=hf_guess", headers=form) for _ in range(4)]
    async with connected(site, "127.0.0.2") as other:
        elsewhere = await other.ask("POST", "/login", body=b"link=hf_guess", headers=form)

    assert [reply.status for reply in replies] == [401, 401, 401, 429]
    assert 0 < int(replies[3].headers["retry-after"]) <= 20
    assert replies[3].json()["details"]["setting"] == "limits.sign_ins_per_minute"
    assert elsewhere.status == 401


@pytest.mark.parametrize("limits", [{"connections": 20}])
async def test_an_address_with_many_connections_leaves_some_for_others(site: Site, limits: dict[str, Any]) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(18):
            wire = await stack.enter_async_context(site.connect())
            assert (await wire.ask("GET", "/healthz")).status == 200
        async with site.connect() as more:
            refused = await more.reply()  # before it asks anything
        async with connected(site, "127.0.0.2") as other:
            elsewhere = await other.ask("GET", "/healthz")

    async with asyncio.timeout(PATIENCE):
        while (await site.ask("GET", "/healthz")).status != 200:  # the server notices in a moment that they are closed
            pass
    assert (refused.status, refused.headers["connection"]) == (429, "close")
    assert refused.json()["details"] == {
        "limit": "connections", "scope": "address", "setting": "limits.address_share", "retry_after": 1.0,
    }  # fmt: skip
    assert elsewhere.status == 200


@pytest.mark.parametrize("limits", [{"sockets": 50}])
async def test_sockets_of_one_user_leave_some_for_others(
    desk: Site, limits: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    eve = Target(desk.port, await make_key(desk.engine, "eve"), desk.engine)
    async with sockets(eve, 50) as answers:
        for key in await others(desk):
            async with sockets(Target(desk.port, key, desk.engine), 2) as theirs:
                assert [answer.status for answer in theirs] == [101, 101]

    refused = [answer for answer in answers if answer.status == 429]
    assert sorted(answer.status for answer in answers) == 41 * [101] + 9 * [429]
    assert all(int(answer.headers["retry-after"]) > 0 for answer in refused)
    assert "without completing" not in caplog.text


@pytest.mark.parametrize("limits", [{"waiting": 50}])
async def test_slow_chats_of_one_user_leave_room_for_others(
    desk: Site, limits: dict[str, Any], released: asyncio.Event
) -> None:
    eve = Target(desk.port, await make_key(desk.engine, "eve"), desk.engine)
    async with slow_chats(eve, 60) as chats:
        replies = [asyncio.create_task(wire.reply()) for wire in chats]
        refused = [await first for first in itertools.islice(asyncio.as_completed(replies), 19)]
        for key in await others(desk):
            answered = await desk.ask("POST", "/api/chat", key=key, json={"message": "Hi", "agent_id": "support"})
            assert (answered.status, answered.json()["reply"]) == (200, "Done.")
        released.set()
        statuses = sorted([(await reply).status for reply in replies])

    assert statuses == 41 * [200] + 19 * [429]
    assert {reply.json()["details"]["setting"] for reply in refused} == {"limits.user_share"}


async def test_a_transaction_that_blocks_a_tenant_leaves_connections_for_others(desk: Site) -> None:
    eve = Target(desk.port, await make_key(desk.engine, "eve"), desk.engine)
    keys = await others(desk)
    async with locked_appends(eve, 40) as waiting:
        await asyncio.sleep(0)
        for key in keys:
            for _ in range(10):
                made = await desk.ask("POST", "/api/conversations", key=key, json={})
                assert made.status == 201

        assert not any(task.done() for task in waiting)
