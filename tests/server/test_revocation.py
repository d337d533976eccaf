"""Access that ends: whoever stays connected without a word is sent away within a second, by every process."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from time import monotonic
from typing import Any

import pytest
from websockets.asyncio.client import connect as connect_socket

from holdfast.access.keys import CACHE_SECONDS
from holdfast.engine import Engine, open_engine
from holdfast.server.authentication import COOKIE, LOOK
from tests.agents.stage import Player
from tests.server import mcp_wire
from tests.server.chatting import held
from tests.server.conftest import make_key
from tests.server.socket_client import address, closed
from tests.server.wire import PATIENCE, Site, Wire

log = logging.getLogger(__name__)

pytestmark = pytest.mark.req("SAFE-03")

Gone = Callable[[], Awaitable[object]]  # waits until the server has sent somebody away
Way = Callable[[Site, dict[str, str]], AbstractAsyncContextManager[Gone]]


@asynccontextmanager
async def socket(site: Site, who: dict[str, str]) -> AsyncGenerator[Gone]:
    async with connect_socket(address(site), additional_headers=who) as opened:

        async def gone() -> str:
            code, reason = await closed(opened)
            assert code == 1008
            return reason

        yield gone


@asynccontextmanager
async def asked(
    site: Site, who: dict[str, str], request: str, headers: dict[str, str], body: Any
) -> AsyncGenerator[Wire]:
    """A connection on which somebody asked for something."""
    content = b"" if body is None else json.dumps(body).encode()
    sent = {"host": "127.0.0.1", "content-type": "application/json", **who, **headers}
    sent["content-length"] = str(len(content))
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    async with site.connect() as wire:
        await wire.send(f"{request} HTTP/1.1\r\n{head}\r\n".encode() + content)
        yield wire


@asynccontextmanager
async def stream(
    site: Site, who: dict[str, str], request: str, headers: dict[str, str] | None = None, body: Any = None
) -> AsyncGenerator[Gone]:
    accepting = {"accept": "text/event-stream", **(headers or {})}
    async with asked(site, who, request, accepting, body) as wire:
        head = await wire.reply_without_body()
        assert (head.status, head.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
        yield wire.rest


@asynccontextmanager
async def events(site: Site, who: dict[str, str]) -> AsyncGenerator[Gone]:
    talk = await site.engine.conversations.create(user="ann", agent="support")
    async with stream(site, who, f"GET /api/conversations/{talk.id}/events") as gone:
        yield gone


@asynccontextmanager
async def streamed_chat(site: Site, who: dict[str, str]) -> AsyncGenerator[Gone]:
    said = {"message": "Hello", "agent_id": "support"}
    async with stream(site, who, "POST /api/chat", body=said) as gone:
        yield gone


@asynccontextmanager
async def chat(site: Site, who: dict[str, str]) -> AsyncGenerator[Gone]:
    said = {"message": "Hello", "agent_id": "support"}
    async with asked(site, who, "POST /api/chat", {}, said) as wire:

        async def gone() -> None:
            assert (await wire.reply()).status == 401

        yield gone


@asynccontextmanager
async def listening(site: Site, who: dict[str, str]) -> AsyncGenerator[Gone]:
    body = mcp_wire.modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    async with stream(site, who, "POST /mcp", mcp_wire.mirror(body), body) as gone:
        yield gone


@asynccontextmanager
async def old_listening(site: Site, who: dict[str, str]) -> AsyncGenerator[Gone]:
    hello = mcp_wire.legacy("initialize", {"protocolVersion": mcp_wire.NEWEST, **mcp_wire.HELLO})
    begun = await site.ask("POST", "/mcp", json=hello, headers={"accept": mcp_wire.ACCEPT, **who})
    session = {"mcp-session-id": begun.headers["mcp-session-id"]}
    async with stream(site, who, "GET /mcp", session) as gone:
        yield gone


@asynccontextmanager
async def oldest_listening(site: Site, who: dict[str, str]) -> AsyncGenerator[Gone]:
    async with stream(site, who, "GET /mcp/sse") as gone:
        yield gone


WAYS: list[Way] = [socket, events, streamed_chat, chat, listening, old_listening, oldest_listening]


@pytest.fixture
async def elsewhere(desk: Site) -> AsyncIterator[Engine]:
    """Another process on the same database."""
    async with open_engine(config=desk.engine.config) as engine:
        yield engine


@pytest.mark.parametrize("way", WAYS)
async def test_a_key_that_another_process_revokes_ends_what_is_idle(
    desk: Site, model: Player, elsewhere: Engine, way: Way
) -> None:
    held(model)
    tenant = await desk.engine.tenants.id_of("default")
    made, other = await desk.engine.keys.create(tenant, "ann"), await make_key(desk.engine, "ann")

    async with (
        way(desk, {"authorization": f"Bearer {made.text}"}) as gone,
        connect_socket(address(desk), additional_headers={"authorization": f"Bearer {other}"}) as stays,
    ):
        began = monotonic()
        await elsewhere.keys.revoke(tenant, made.key.id)
        async with asyncio.timeout(PATIENCE):
            await gone()
        took = monotonic() - began
        await (await stays.ping())

    log.info("%s ended after %.2f s", way.__name__, took)
    assert LOOK + CACHE_SECONDS < 1


async def test_a_browser_that_signs_out_ends_its_sockets(desk: Site, elsewhere: Engine) -> None:
    await make_key(desk.engine, "ann")
    link = await desk.engine.keys.create_link(await desk.engine.tenants.id_of("default"), "ann")
    session = await desk.engine.keys.exchange_link(link)

    async with socket(desk, {"cookie": f"{COOKIE}={session}"}) as gone:
        await elsewhere.keys.end_session(session)
        # Cookies do not know ports: one that is not valid is as none, and access without a key has ended.
        assert str(await gone()).startswith("a key is needed")


async def test_access_without_a_key_ends_what_is_idle_when_the_first_key_is_made(desk: Site, elsewhere: Engine) -> None:
    async with socket(desk, {}) as gone:
        await make_key(elsewhere, "ann")
        assert str(await gone()).startswith("a key is needed")


async def test_those_who_stay_are_looked_at_by_one_statement_and_only_while_there_are_any(
    desk: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    keys = type(desk.engine.keys)
    renew = keys.renew

    async def counting(self: Any, texts: Any) -> None:
        asked.append(len(texts))
        await renew(self, texts)

    monkeypatch.setattr(keys, "renew", counting)
    who = [{"authorization": f"Bearer {await make_key(desk.engine, name)}"} for name in ("ann", "ann", "bob")]
    async with socket(desk, who[0]), socket(desk, who[1]), socket(desk, who[2]), socket(desk, who[2]):
        asked.clear()
        async with asyncio.timeout(PATIENCE):
            while len(asked) < 2:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(LOOK / 4)
    assert asked[1] == 3
    await desk.ask("GET", "/api/me", headers=who[0])
    seen = len(asked)
    await asyncio.sleep(2 * LOOK)

    assert len(asked) - seen <= 1
