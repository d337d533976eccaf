"""Messages that nobody should send, made of such as somebody would: always the same ones for the same seed."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

VALID: tuple[Any, ...] = (
    {"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1},
    {"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": "a"},
    {"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": "x"}, "id": 1.5},
    {"jsonrpc": "2.0", "method": "shop.example/market/createOrder/1.0", "params": {"parcel": "AB"}, "id": None},
    {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
    {"jsonrpc": "2.0", "method": "foobar", "id": 2**70},
    {"host": "shop.example", "service": "market", "action": "createOrder", "version": "1.0", "data": {"parcel": "AB"}},
    {"host": "shop.example", "service": "market", "action": "createOrder", "version": "1.0", "title": "", "success": 1},
)  # fmt: skip
JUNK: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**63, 10**400, 0.1, 1e308, -0.0, "", "2.0", "\0", "\ud83d", "a" * 500, "ä\u2028",
    [], {}, [[]], [None, 1], {"a": {"b": []}}, {"jsonrpc": "2.0"}, "__proto__", "rpc.discover", "rpc.x",
)  # fmt: skip
RAW = (b"\xff", b"\xc3", b"\\ud800", b"NaN", b"1e999", b"Infinity", b"}", b"[", b'"', b"\\", b"\0", b"9" * 5000, b",")


def messages(count: int, *, seed: int) -> Iterator[bytes]:
    """So many messages."""
    random = Random(seed)
    for _ in range(count):
        yield _message(random)


def _message(random: Random) -> bytes:
    kind = random.random()
    if kind < 0.1:
        batch = [_mutated(random) for _ in range(random.choice((0, 1, 2, 3, 4)))]
        return _spoiled(json.dumps(batch).encode(), random, 0.1)
    if kind < 0.11:
        return _nested(random)
    if kind < 0.13:
        return json.dumps(random.choice(JUNK)).encode()
    return _spoiled(json.dumps(_mutated(random)).encode(), random, 0.3)


def _mutated(random: Random) -> Any:
    if random.random() < 0.05:
        return random.choice(JUNK)
    value = dict(random.choice(VALID))
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        key = random.choice([*value, "jsonrpc", "method", "params", "id", "host", "data", "extra"])
        if random.random() < 0.4:
            value.pop(key, None)
        else:
            value[key] = random.choice(JUNK)
    return value


def _nested(random: Random) -> bytes:
    depth = random.choice((10, 120, 127, 130, 1000, 20_000))
    opening, closing = random.choice(((b"[", b"]"), (b'{"a":', b"}")))
    inner = opening * depth + b"1" + closing * depth
    return inner if random.random() < 0.3 else b'{"jsonrpc":"2.0","method":"subtract","id":3,"params":%b}' % inner


def _spoiled(data: bytes, random: Random, share: float) -> bytes:
    if random.random() > share:
        return data
    place = random.randrange(len(data) + 1)
    return random.choice((
        data[:place],
        data[:place] + random.choice(RAW) + data[place:],
        data[:place] + bytes([random.randrange(256)]) + data[place + 1 :],
        data + random.choice(RAW),
    ))  # fmt: skip
