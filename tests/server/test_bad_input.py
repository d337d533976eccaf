import json
from typing import Any

import pytest

from holdfast.server.connections import MAX_HEAD_BYTES
from tests.server.wire import Site, Wire

DEEP = b'{"principal": ' + b"[" * 1000 + b"]" * 1000 + b"}"
TEN_MEGABYTES = 10_000_000
JSON = {"Content-Type": "application/json"}

BAD_BODIES = {
    "NUL": rb'{"principal": "a\u0000b"}',
    "lone surrogate": rb'{"principal": "a\ud83d"}',
    "NaN": b'{"principal": "ann", "lifetime_seconds": NaN}',
    "a number beyond a float": b'{"principal": "ann", "lifetime_seconds": 1e999}',
    "an enormous lifetime": b'{"principal": "ann", "lifetime_seconds": 99999999999999999999}',
    "depth 1,000": DEEP,
    "a number as text": b'{"principal": 7}',
    "text as a list": b'{"principal": "ann", "scopes": "admin"}',
    "true as a number": b'{"principal": "ann", "lifetime_seconds": true}',
    "an unknown field": b'{"principal": "ann", "colour": "red"}',
    "an unknown scope": b'{"principal": "ann", "scopes": ["everything"]}',
    "a missing field": b'{"label": "x"}',
    "an empty name": b'{"principal": ""}',
    "a long name": json.dumps({"principal": "a" * 256}).encode(),
    "a list": b"[]",
    "null": b"null",
    "nothing": b"",
    "half of it": b'{"principal": "ann"',
    "two values": b'{"principal": "ann"} {}',
    "not UTF-8": b'{"principal": "\xff\xfe"}',
    "a byte order mark": b'\xef\xbb\xbf{"principal": "ann"}',
    "UTF-16": '{"principal": "ann"}'.encode("utf-16"),
    "no JSON": b"principal=ann",
}


async def usable(wire: Wire) -> bool:
    """Whether the same connection still serves."""
    return (await wire.ask("GET", "/api/me")).status == 200


@pytest.mark.req("ENG-07", "ENG-08")
@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES.keys())
async def test_a_bad_body_is_a_clear_problem_and_the_connection_stays_usable(site: Site, body: bytes) -> None:
    async with site.connect() as wire:
        reply = await wire.ask("POST", "/api/keys", body=body, headers=JSON)

        assert reply.status == 400, reply
        assert reply.code == "invalid_input"
        assert reply.json()["why"]
        assert await usable(wire)


@pytest.mark.req("ENG-08")
async def test_a_large_body_is_refused_and_the_connection_stays_usable(site: Site) -> None:
    async with site.connect() as wire:
        reply = await wire.ask("POST", "/api/keys", body=b" " * TEN_MEGABYTES, headers=JSON)

        assert (reply.status, reply.code) == (413, "too_large")
        assert await usable(wire)


@pytest.mark.req("ENG-08")
async def test_a_large_body_without_a_length_is_refused_and_the_connection_stays_usable(site: Site) -> None:
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    async with site.connect() as wire:
        reply = await wire.ask(
            "POST", "/api/keys", body=chunk * 10 + b"0\r\n\r\n", headers={**JSON, "Transfer-Encoding": "chunked"}
        )

        assert (reply.status, reply.code) == (413, "too_large")
        assert await usable(wire)


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "", "\udc80"])
async def test_a_body_of_another_kind_is_refused(site: Site, media_type: str) -> None:
    async with site.connect() as wire:
        headers = {"Content-Type": media_type}
        reply = await wire.ask("POST", "/api/keys", body=b'{"principal": "ann"}', headers=headers)

        assert (reply.status, reply.code) == (415, "invalid_input")
        assert await usable(wire)


async def test_a_name_with_any_other_character_comes_back_as_it_was(site: Site) -> None:
    name = "ann é 漢字 😀 \u2028 \ufffe \U0010fffe"

    reply = await site.ask("POST", "/api/keys", json={"principal": name, "label": name})

    assert reply.status == 201
    assert (reply.json()["key"]["principal"], reply.json()["key"]["label"]) == (name, name)


@pytest.mark.parametrize("name", ["", "A", "a b", "ä", "\0", "\ud83d", "a" * 64, "'; drop table tenant"])
async def test_a_bad_name_of_a_tenant_is_refused(site: Site, name: str) -> None:
    reply = await site.ask("POST", "/api/tenants", key=site.file.token, json={"name": name})

    assert (reply.status, reply.code) == (400, "invalid_input")


@pytest.mark.parametrize("id", ["x", "%00", "%ff", "1", "a" * 5000, "%ED%A0%80", "..", "'"])
async def test_a_bad_id_is_refused(site: Site, id: str) -> None:
    reply = await site.ask("DELETE", f"/api/keys/{id}")

    assert (reply.status, reply.code) in [(400, "invalid_input"), (404, "not_found")]


@pytest.mark.parametrize(
    "data", [b"hello\r\n\r\n", b"\0" * 100, b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"]
)
async def test_what_is_no_http_is_a_problem_and_the_end_of_the_connection(site: Site, data: bytes) -> None:
    async with site.connect() as wire:
        await wire.send(data)

        assert (await wire.reply()).code == "invalid_input"
        assert await wire.ended()


async def test_an_endless_head_is_refused(site: Site) -> None:
    async with site.connect() as wire:
        await wire.send(b"GET /healthz HTTP/1.1\r\nX-Long: " + b"a" * (MAX_HEAD_BYTES + 1))

        assert (await wire.reply()).status == 400
        assert await wire.ended()


async def test_an_address_that_does_not_exist_is_a_problem(site: Site) -> None:
    reply = await site.ask("GET", "/nothing/here")

    assert (reply.status, reply.code) == (404, "not_found")
    assert reply.json()["instance"] == "/nothing/here"


async def test_a_method_that_does_not_exist_is_a_problem_that_names_those_that_do(site: Site) -> None:
    reply = await site.ask("PUT", "/api/keys")

    assert (reply.status, reply.code) == (405, "invalid_input")
    assert reply.headers["allow"] == "GET, HEAD, POST"


async def test_head_is_answered_like_get_without_a_body(site: Site) -> None:
    async with site.connect() as wire:
        await wire.send(
            b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )
        head = await wire.reply_without_body()
        get = await wire.reply()

    assert (head.status, get.status) == (200, 200)
    assert head.headers["content-length"] == str(len(get.body))


@pytest.mark.parametrize("settings", [{"body_timeout": 0.2}])
async def test_a_body_that_does_not_come_is_given_up(site: Site, settings: dict[str, Any]) -> None:
    async with site.connect() as wire:
        await wire.send(b"POST /api/keys HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n")
        await wire.send(b"Content-Type: application/json\r\n\r\n{")
        reply = await wire.reply()

        assert (reply.status, reply.code) == (408, "timed_out")
        assert await wire.ended()


@pytest.mark.parametrize("settings", [{"request_timeout": 1}])
async def test_a_request_that_takes_too_long_is_given_up(site: Site, settings: dict[str, Any]) -> None:
    async with site.connect() as wire:
        reply = await wire.ask("GET", "/slow?seconds=60")

        assert (reply.status, reply.code) == (504, "timed_out")
        assert await usable(wire)


@pytest.mark.parametrize("query", ["", "?seconds=soon", "?seconds=1&seconds=2"])
async def test_a_bad_parameter_is_refused(site: Site, query: str) -> None:
    reply = await site.ask("GET", f"/slow{query}")

    assert (reply.status, reply.code) == (400, "invalid_input")
    assert "seconds" in reply.json()["detail"]


async def test_a_large_body_is_not_taken_for_the_head_of_the_request_behind_it(site: Site) -> None:
    body = b'{"name": "' + b"x" * 100_000 + b'"}'
    first = (
        b"POST /api/tenants HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    async with site.connect() as wire:
        await wire.send(first % len(body) + body + b"GET /healthz HTTP/1.1\r\n")
        await wire.send(b"Host: localhost\r\n\r\n")

        replies = [await wire.reply(), await wire.reply()]

    assert [reply.status for reply in replies] == [403, 200]
