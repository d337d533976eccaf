"""What a back end answers is read as far as there is room, and told so that a model can act on it."""

import gzip
import random
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.core.errors import HoldfastError, TooLarge
from holdfast.execution.rest.responses import MAX_MEMBERS, read_body, to_result

JSON = {"Content-Type": "application/json"}


async def chunks(data: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    """A body in pieces."""
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def read(data: bytes, encoding: str = "", *, limit: int = 1_000_000, size: int = 1000) -> bytes:
    """A body as it is read."""
    return await read_body(chunks(data, size), encoding=encoding, limit=limit)


def raw_deflate(data: bytes) -> bytes:
    """`deflate` without a head."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.req("EXEC-01")
@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_packed_bodies_are_unpacked(size: int) -> None:
    text = b"".join(b"line %d\n" % number for number in range(5000))

    assert await read(text, size=size) == text
    assert await read(text, "identity", size=size) == text
    assert await read(gzip.compress(text), "gzip", size=size) == text
    assert await read(gzip.compress(text) + gzip.compress(b"more"), "x-gzip", size=size) == text + b"more"
    assert await read(gzip.compress(text) + bytes(600), "gzip", size=size) == text
    assert await read(gzip.compress(text) + bytes(9) + gzip.compress(b"more"), "gzip", size=size) == text + b"more"
    assert await read(zlib.compress(text), "deflate", size=size) == text
    assert await read(zlib.compress(text) + b"more", "deflate", size=size) == text
    assert await read(raw_deflate(text), "Deflate", size=size) == text
    assert await read(b"", "gzip") == b""


@pytest.mark.req("EXEC-02")
async def test_a_body_that_would_be_a_gigabyte_is_not_inflated() -> None:
    layer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    bomb = b"".join(layer.compress(bytes(1_000_000)) for _ in range(1000)) + layer.flush()
    tracemalloc.start()

    with pytest.raises(TooLarge, match="more than 1,000,000 bytes"):
        await read(bomb, "gzip", size=len(bomb))

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(bomb) < 2_000_000
    assert peak < 10_000_000


@pytest.mark.req("EXEC-02")
async def test_a_body_that_is_packed_to_more_than_it_is_ends() -> None:
    size = 100_000
    noise = random.Random(7).randbytes(size)

    with pytest.raises(TooLarge, match="more than 100,000 bytes"):
        await read(gzip.compress(b"", mtime=0) + bytes(size * 2), "gzip", limit=size)
    assert await read(gzip.compress(noise), "gzip", limit=size) == noise


@pytest.mark.req("SAFE-06")
async def test_a_body_of_many_gzip_members_ends() -> None:
    member = gzip.compress(b"x")

    assert await read(member * MAX_MEMBERS, "gzip") == b"x" * MAX_MEMBERS
    with pytest.raises(TooLarge, match="more than 1,000 gzip members"):
        await read(gzip.compress(b"") * 200_000, "gzip", limit=10_000_000)


async def test_a_body_of_exactly_the_limit_is_read() -> None:
    assert len(await read(bytes(5000), limit=5000)) == 5000
    assert len(await read(gzip.compress(bytes(5000)), "gzip", limit=5000)) == 5000
    with pytest.raises(TooLarge):
        await read(bytes(5001), limit=5000)
    with pytest.raises(TooLarge):
        await read(gzip.compress(bytes(5001)), "gzip", limit=5000)


@pytest.mark.parametrize(
    ("data", "encoding", "says"),
    [
        (b"no gzip at all", "gzip", "is not valid gzip"),
        (b"\xff\xff no deflate", "deflate", "is not valid deflate"),
        (gzip.compress(b"x" * 100, mtime=0)[:-12], "gzip", "broke off"),
        (zlib.compress(b"x")[:1], "deflate", "broke off"),
        (gzip.compress(b"x" * 100, mtime=0)[:-4] + b"abcd", "gzip", "is not valid gzip"),
        (b"x", "br", "compressed as 'br'"),
        (b"x", "gzip, gzip", "compressed as 'gzip, gzip'"),
    ],
)
async def test_what_is_packed_wrongly_is_told_as_such(data: bytes, encoding: str, says: str) -> None:
    with pytest.raises(HoldfastError, match=says):
        await read(data, encoding)


@pytest.mark.req("EXEC-01")
@pytest.mark.parametrize(
    ("kind", "body", "value"),
    [
        ("application/json", b'{"a": [1, null]}', {"a": [1, None]}),
        ("application/problem+json; charset=utf-8", b'{"a":1}', {"a": 1}),
        ("application/json", b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        ("application/json", b'{"a": 1', '{"a": 1'),
        ("application/json", b"<html>", "<html>"),
        ("application/json", b"[" * 200, "[" * 200),
        ("application/json", b'"text"', "text"),
        ("", b'{"a": 1}', {"a": 1}),
        ("text/plain", b'[{"a": 1}]', [{"a": 1}]),
        ("text/plain", b"{a}", "{a}"),
        ("text/plain; charset=iso-8859-1", "é".encode("latin-1"), "é"),
        ('text/plain; charset="utf-16"', "é".encode("utf-16"), "é"),
        ("text/html; charset=nonsense", "é".encode(), "é"),
        ("text/html; charset=base64", "é".encode(), "é"),
        ("text/csv", b"a,\xff", "a,\ufffd"),
        ("application/xml", b"<a/>", "<a/>"),
        ("application/octet-stream", b"plain words", "plain words"),
        ("", b"plain words", "plain words"),
    ],
)
def test_answers_are_told_as_what_they_are(kind: str, body: bytes, value: Any) -> None:
    result = to_result(200, {"Content-Type": kind} if kind else {}, body)

    assert (result.value, result.failed) == (value, False)


def test_bytes_are_told_by_their_type_and_size_and_kept_whole() -> None:
    result = to_result(200, {"Content-Type": "image/png"}, b"\x89PNG\0")

    assert (result.value["content_type"], result.value["bytes"]) == ("image/png", 5)
    assert (result.whole, result.content_type) == (b"\x89PNG\0", "image/png")


def test_an_empty_answer_is_nothing_or_says_where_it_is() -> None:
    assert to_result(204, {}, b"").value is None
    assert to_result(201, {"Location": "/orders/7"}, b"").value == {"status": 201, "location": "/orders/7"}


def test_the_answer_to_head_is_its_headers() -> None:
    result = to_result(200, {"ETag": '"7"', "Set-Cookie": "session=1"}, b"", method="HEAD")

    assert result.value == {"status": 200, "headers": {"etag": '"7"'}}


@pytest.mark.req("EXEC-02")
@pytest.mark.parametrize(
    ("status", "says"),
    [
        (400, "change them"),
        (401, "secrets of the source"),
        (404, "Not Found. It does not exist"),
        (418, "rejected"),
        (422, "change them"),
        (429, "wait before"),
        (503, "try again later"),
        (599, "try again later"),
    ],
)
def test_a_refusal_says_what_to_do_and_what_the_back_end_says(status: int, says: str) -> None:
    result = to_result(status, JSON, b'{"detail": "no"}')

    assert result.failed
    assert result.value["status"] == status
    assert says in result.value["error"]
    assert result.value["body"] == {"detail": "no"}


def test_how_long_to_wait_is_shown() -> None:
    assert to_result(429, {"Retry-After": "30"}, b"").value["retry_after"] == "30 seconds"
    date = "Wed, 21 Oct 2026 07:28:00 GMT"
    assert to_result(503, {"Retry-After": date}, b"").value["retry_after"] == date


@pytest.mark.req("EXEC-05")
def test_a_back_end_that_fails_leaves_what_is_not_idempotent_in_doubt() -> None:
    assert "may have taken effect" in to_result(500, {}, b"", idempotent=False).value["error"]
    assert "may have taken effect" in to_result(408, {}, b"", idempotent=False).value["error"]
    assert "try again" in to_result(408, {}, b"").value["error"]
    assert "may have taken effect" not in to_result(422, {}, b"", idempotent=False).value["error"]


@pytest.mark.req("EXEC-05")
@pytest.mark.parametrize(
    ("status", "says"),
    [
        (300, "may have"),
        (301, "may have"),
        (302, "may have"),
        (307, "did not take effect"),
        (308, "did not take effect"),
    ],
)
def test_only_a_redirect_that_keeps_the_method_says_that_nothing_was_done(status: int, says: str) -> None:
    result = to_result(status, {"Location": "/orders/7"}, b"", method="POST", idempotent=False)

    assert result.failed
    assert says in result.value["note"]


def test_a_redirect_that_is_not_followed_is_told() -> None:
    moved = to_result(302, {"Location": "https://elsewhere.example/"}, b"")
    done = to_result(303, {"Location": "/orders/7"}, b"")

    assert (moved.failed, moved.value["location"]) == (True, "https://elsewhere.example/")
    assert (done.failed, done.value["location"]) == (False, "/orders/7")
