"""Floods: one caller who sends too much leaves the others their places. `test_long_floods.py` has the long forms."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tests.server.conftest import make_key
from tests.server.wire import PATIENCE, Site, Wire

SLOW_LOGIN = (
    b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\nl"
)

pytestmark = pytest.mark.req("SAFE-06")


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
    async with AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(site.connect()) for _ in range(300)]
        for wire in slow:
            await wire.send(SLOW_LOGIN)
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
