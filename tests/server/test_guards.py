import asyncio
import json
import logging
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest

from holdfast.core.errors import Overloaded
from holdfast.server import connections, middleware
from holdfast.server.request_limits import RequestSlot
from tests.server.wire import Site, Wire


async def test_a_sane_request_id_is_kept(site: Site) -> None:
    reply = await site.ask("GET", "/nothing", headers={"X-Request-Id": "web-42.a_b"})

    assert reply.headers["x-request-id"] == "web-42.a_b"
    assert reply.json()["request_id"] == "web-42.a_b"


@pytest.mark.parametrize("id", ["", "a b", "<script>", "a" * 129, "é"])
async def test_any_other_request_id_is_replaced(site: Site, id: str) -> None:
    reply = await site.ask("GET", "/healthz", headers={"X-Request-Id": id})

    assert UUID(reply.headers["x-request-id"]).version == 7


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize("path", ["/healthz", "/api/me", "/nothing", "/broken", "/login", "/api/openapi.json"])
async def test_every_answer_is_kept_out_of_caches_and_frames(site: Site, path: str) -> None:
    reply = await site.ask("GET", path)

    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["content-security-policy"].startswith("default-src 'none'; ")
    assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]
    assert "server" not in reply.headers


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (403, [("Host", "evil.example")]),
        (400, [("Host", "localhost"), ("Host", "localhost")]),
        (400, [("Host", "")]),
        (403, [("Origin", "http://evil.example")]),
        (403, [("Origin", "null")]),
    ],
)
async def test_a_foreign_host_or_origin_is_refused_and_the_connection_stays_usable(
    site: Site, status: int, headers: list[tuple[str, str]]
) -> None:
    async with site.connect() as wire:
        for method, path in [("GET", "/api/me"), ("POST", "/api/keys"), ("GET", "/nothing")]:
            reply = await wire.ask(method, path, headers=headers)
            assert reply.status == status
        assert (await wire.ask("GET", "/api/me")).status == 200


async def test_a_request_without_a_host_is_refused(site: Site) -> None:
    async with site.connect() as wire:
        await wire.send(b"GET /api/me HTTP/1.1\r\n\r\n")

        assert (await wire.reply()).status == 400


@pytest.mark.parametrize(
    "settings", [{"allowed_hosts": ("holdfast.example",), "allowed_origins": ("https://app.example",)}]
)
async def test_an_allowed_site_may_call_and_read_the_answer(site: Site, settings: dict[str, Any]) -> None:
    page = {"Origin": "https://app.example", "Host": "holdfast.example"}
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}

    preflight = await site.ask("OPTIONS", "/api/keys", headers={**page, **asked})
    reply = await site.ask("POST", "/api/keys", headers=page, key="hf_wrong", json={"principal": "ann"})

    assert preflight.status == 200
    assert "authorization" in preflight.headers["access-control-allow-headers"]
    assert reply.status == 401
    assert reply.headers["access-control-allow-origin"] == "https://app.example"
    read = {name.strip() for name in reply.headers["access-control-expose-headers"].split(",")}
    assert read == {"x-request-id", "mcp-session-id", "www-authenticate"}


@pytest.mark.req("ENG-07")
async def test_an_unforeseen_failure_tells_nothing_and_is_logged_with_the_request_id(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        reply = await site.ask("GET", "/broken", headers={"X-Request-Id": "lost"})

    assert (reply.status, reply.code) == (500, "broken")
    assert b"secret" not in reply.body
    assert b"KeyError" not in reply.body
    assert "request lost broke" in caplog.text
    assert "inner secret" in caplog.text


async def test_who_keeps_a_connection_waiting_loses_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "KEEP_ALIVE", 0.2)
    async with site.connect() as wire:
        assert await wire.ended()


@pytest.mark.req("SAFE-06")
@pytest.mark.parametrize("settings", [{"head_timeout": 0.5}])
async def test_who_sends_headers_slowly_is_told_so_and_loses_the_connection(
    site: Site, settings: dict[str, Any]
) -> None:
    async with site.connect() as wire:
        sending = asyncio.create_task(trickle(wire, b"GET /healthz HTTP/1.1\r\nX: " + 500 * b"a", pause=0.1))
        reply = await wire.reply()
        ended = await wire.ended()
        sending.cancel()

    assert (reply.status, reply.code, reply.headers["connection"]) == (408, "timed_out", "close")
    assert ended


@pytest.mark.req("SAFE-06")
@pytest.mark.parametrize("settings", [{"head_timeout": 0.5}])
async def test_each_request_of_a_connection_has_its_own_time_for_its_headers(
    site: Site, settings: dict[str, Any]
) -> None:
    async with site.connect() as wire:
        for _ in range(3):
            assert (await wire.ask("GET", "/slow?seconds=0.4")).status == 200


async def trickle(wire: Wire, data: bytes, *, pause: float, size: int = 1) -> None:
    """Send some bytes at a time; who does not read them any more is no concern."""
    with suppress(ConnectionError):
        for start in range(0, len(data), size):
            await wire.send(data[start : start + size])
            await asyncio.sleep(pause)


@pytest.mark.req("SAFE-06")
@pytest.mark.parametrize("settings", [{"min_body_rate": 1000}])
async def test_a_body_at_the_documented_rate_passes_and_a_slower_one_does_not(
    site: Site, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(middleware, "FIRST_SECONDS", 1.0)
    body = json.dumps({"principal": "ann", "label": 200 * "x"}).encode() + 2000 * b" "
    head = b"POST /api/keys HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    head += b"Content-Length: %d\r\n\r\n" % len(body)

    async with site.connect() as slow:
        await slow.send(head)
        sending = asyncio.create_task(trickle(slow, body, pause=0.1, size=10))
        refused = await slow.reply()
        sending.cancel()
    async with site.connect() as fair:
        await fair.send(head)
        sending = asyncio.create_task(trickle(fair, body, pause=0.1, size=150))
        taken = await fair.reply()
        await sending

    assert (refused.status, refused.code) == (408, "timed_out")
    assert "1000 bytes a second" in refused.json()["next"]
    assert taken.status == 201


def test_a_body_has_time_by_what_has_come_of_it_and_never_more_than_the_whole_may_take() -> None:
    assert middleware.body_seconds(0, timeout=30, rate=1000) == 5
    assert middleware.body_seconds(10_000, timeout=30, rate=1000) == 15
    assert middleware.body_seconds(8_000_000, timeout=30, rate=1000) == 30


async def test_a_request_may_take_longer_than_a_connection_may_be_silent(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "KEEP_ALIVE", 0.2)

    reply = await site.ask("GET", "/slow?seconds=0.6")

    assert reply.json() == "done"


async def test_an_upgrade_that_is_not_offered_is_answered_as_if_it_had_not_been_asked_for(site: Site) -> None:
    reply = await site.ask("GET", "/healthz", headers={"Connection": "Upgrade", "Upgrade": "h2c"})

    assert reply.status == 200


async def test_that_it_lives_is_answered_however_busy_it_is(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RequestSlot, "arrive", full)
    monkeypatch.setattr(RequestSlot, "enter_unknown", full)

    assert (await site.ask("GET", "/api/me")).status == 429
    assert (await site.ask("GET", "/nothing/healthz")).status == 429
    assert (await site.ask("GET", "/healthz")).status == 200


def full(visit: RequestSlot, **_: object) -> None:
    raise Overloaded("the server is busy", retry_after=1)
