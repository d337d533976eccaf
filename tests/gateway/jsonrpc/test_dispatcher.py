import asyncio
import json
import logging
from typing import Any

import pytest

from holdfast.access.principals import USER_SCOPES
from tests.gateway.jsonrpc.conftest import CREATE_ORDER, Desk, Shop

pytestmark = pytest.mark.req("RPC-02")

CANCEL = "shop.example/market/cancelOrder/1.0"
GIVE = "shop.example/market/give/1.0"
WAIT = "shop.example/market/wait/1.0"


def asking(id: str) -> bytes:
    return b'{"jsonrpc": "2.0", "method": "get_data", "id": %b}' % id.encode()


async def test_an_id_comes_back_as_it_was(desk: Desk) -> None:
    ids = ["7", "-1", "1.5", "0.1", "123456789012345678901234567890", '""', '"a\\u0000"', '"\\ud83d"', "null"]

    replies = [await desk.reply(asking(id)) for id in ids]

    assert [(reply.body or b"").rpartition(b'"id":')[2].decode() for reply in replies] == [f"{id}}}" for id in ids]


async def test_what_cannot_be_an_id_is_refused_without_one(desk: Desk) -> None:
    answers = [await desk.send(asking(id)) for id in ("true", "[]", "{}")]

    assert [(each["error"]["code"], each["id"]) for each in answers] == [(-32600, None)] * 3
    assert "`id` is neither" in answers[0]["error"]["data"]["description"]


async def test_another_version_is_no_request_and_is_answered_under_its_id(desk: Desk) -> None:
    versions: list[Any] = ["1.0", "2", 2.0, None, ["2.0"]]

    answers = [await desk.send({"jsonrpc": version, "method": "get_data", "id": 7}) for version in versions]

    assert [(each["error"]["code"], each["id"]) for each in answers] == [(-32600, 7)] * 5


async def test_params_that_do_not_fit_say_where_and_why(desk: Desk) -> None:
    missing = await desk.call(CREATE_ORDER, {"amount": 2})
    low = await desk.call(CREATE_ORDER, {"parcel": "AB", "amount": 0})
    many = await desk.call(CREATE_ORDER, ["AB", 2, 3])
    neither = await desk.call(CREATE_ORDER, "AB")

    assert [each["code"] for each in (missing, low, many, neither)] == [-32602, -32602, -32602, -32600]
    assert "`parcel`" in missing["data"]["description"]
    assert "`amount`" in low["data"]["description"]
    assert "parcel, amount" in many["data"]["description"]
    assert many["data"] | {"description": ""} == {
        "statusCode": 400,
        "code": "invalid_input",
        "message": f"{CREATE_ORDER} was not called",
        "description": "",
        "severity": "ERROR",
    }


@pytest.mark.req("RPC-03")
async def test_a_service_is_called_by_its_method_with_defaults_and_knows_who_calls(desk: Desk) -> None:
    by_name = await desk.call(CREATE_ORDER, {"parcel": "AB"})
    by_place = await desk.call(CREATE_ORDER, ["AB", 3])
    by_tool = await desk.call("shop_example_market_createOrder_1_0", {"parcel": "AB"})

    assert by_name == by_tool == {"order": {"parcel": "AB", "amount": 1}, "for": "ann"}
    assert by_place == {"order": {"parcel": "AB", "amount": 3}, "for": "ann"}


@pytest.mark.req("ENG-07")
async def test_a_service_that_fails_is_an_error_with_its_code_and_one_that_breaks_tells_nothing(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    closed, foreign = await desk.call(CANCEL, ["closed"]), await desk.call(CANCEL, ["foreign"])
    strange, unasked = await desk.call(CANCEL, ["strange"]), await desk.call("refund")
    broken = await desk.call(CANCEL, ["broken"])

    assert (closed["code"], closed["data"]["code"], closed["data"]["statusCode"]) == (-32602, "invalid_input", 400)
    assert "the order is closed: it was sent. Send it back" in closed["data"]["description"]
    assert (foreign["code"], foreign["message"], foreign["data"]["statusCode"]) == (-31403, "Forbidden", 403)
    assert (strange["code"], strange["message"], strange["data"]["code"]) == (-31502, "Strange", "strange")
    assert (unasked["code"], "a person has to allow" in unasked["data"]["message"]) == (-31403, True)
    assert (broken["code"], broken["message"], broken["data"]["statusCode"]) == (-32603, "Internal error", 500)
    assert "request-7" in broken["data"]["description"]
    assert "secret" not in str(broken)
    assert any("request-7" in line and "KeyError" in line for line in caplog.messages)


async def test_methods_are_exact_and_one_that_is_not_seen_is_as_one_that_is_not_there(desk: Desk) -> None:
    user = desk.of(scopes=USER_SCOPES, user="bob")

    upper = await desk.call(CREATE_ORDER.upper(), {"parcel": "AB"})
    hidden = await user.call(CREATE_ORDER, {"parcel": "AB"})
    absent = await user.call(CREATE_ORDER.replace("1.0", "2.0"), {"parcel": "AB"})

    assert [each["code"] for each in (upper, hidden, absent)] == [-32601] * 3
    assert str(hidden).replace("1.0", "2.0") == str(absent)


@pytest.mark.req("MCP-07")
async def test_whoever_only_reads_calls_what_only_reads(desk: Desk) -> None:
    reader = desk.of(scopes=frozenset({"read", "admin"}))

    assert await reader.call("get_data") == ["hello", 5]
    assert (await reader.call(CREATE_ORDER, {"parcel": "AB"}))["code"] == -32601
    assert (await desk.of(scopes=frozenset({"admin"})).call("get_data"))["code"] == -32601


async def test_discovery_describes_what_the_caller_sees_services_first(desk: Desk) -> None:
    document = await desk.call("rpc.discover")
    reader = await desk.of(scopes=frozenset({"read", "admin"})).call("rpc.discover")

    methods = {each["name"]: each for each in document["methods"]}
    names = [*methods]
    assert document["info"]["title"] == "Holdfast"
    assert names.index(CREATE_ORDER) < names.index("subtract")
    assert names[:4] == sorted([CREATE_ORDER, CANCEL, GIVE, WAIT])
    assert [(each["name"], each["required"]) for each in methods[CREATE_ORDER]["params"]] == [
        ("parcel", True),
        ("amount", False),
    ]
    assert methods[CREATE_ORDER]["params"][1]["schema"]["minimum"] == 1
    assert (await desk.call("rpc.other"))["code"] == -32601
    seen = {each["name"] for each in reader["methods"]}
    assert {GIVE, "get_data"} <= seen
    assert not seen & {CREATE_ORDER, "subtract"}


@pytest.mark.parametrize("settings", [{"batch_parallel": 3, "max_batch": 8}])
async def test_a_batch_is_answered_in_its_order_so_many_at_once_and_not_without_end(desk: Desk, shop: Shop) -> None:
    batch: list[Any] = [{"jsonrpc": "2.0", "method": WAIT, "params": [7 - id], "id": id % 2} for id in range(8)]
    asked = asyncio.create_task(desk.send(batch))
    async with asyncio.timeout(10):
        for _ in range(3):
            await shop.begun.acquire()
        shop.gate.set()
        answers = await asked

    assert [(each["result"], each["id"]) for each in answers] == [(7 - id, id % 2) for id in range(8)]
    assert shop.most_running == 3
    larger = await desk.send([*batch, 1])
    assert (larger["error"]["code"], larger["id"]) == (-32600, None)
    assert "at most 8" in larger["error"]["data"]["description"]


@pytest.mark.parametrize("settings", [{"batch_parallel": 1, "timeout": 0.3}])
async def test_a_call_that_takes_too_long_is_told_so_and_so_are_those_that_wait_behind_it(desk: Desk) -> None:
    batch = [{"jsonrpc": "2.0", "method": WAIT, "params": [id], "id": id} for id in range(2)]

    first, second = await desk.send(batch)

    assert (first["error"]["code"], first["error"]["data"]["code"]) == (-31504, "timed_out")
    assert (second["error"]["code"], second["id"]) == (-31504, 1)
    assert "was not called" in second["error"]["data"]["description"]


@pytest.mark.parametrize("settings", [{"max_result_bytes": 2_000_000}])
async def test_a_result_comes_whole_or_not_at_all(desk: Desk) -> None:
    large = await desk.call(GIVE, [1_500_000])
    larger = await desk.call(GIVE, [2_000_000])
    picture = await desk.call("draw")

    assert large == "x" * 1_500_000
    assert (larger["code"], larger["data"]["code"]) == (-31413, "too_large")
    assert "2000000" in larger["data"]["description"]
    assert picture == [{"type": "image", "data": "ZG90", "mimeType": "image/png"}]


@pytest.mark.req("RPC-02", "ENG-08")
@pytest.mark.parametrize("settings", [{"max_result_bytes": 10_000, "batch_parallel": 2}])
async def test_the_answer_to_a_batch_has_its_bounds_and_who_finds_no_room_is_told(desk: Desk) -> None:
    sizes = [*([9_000] * 20), 10]
    batch: list[Any] = [{"jsonrpc": "2.0", "method": GIVE, "params": [size], "id": size} for size in sizes]

    reply = await desk.reply([*batch, {"jsonrpc": "2.0", "method": GIVE, "id": []}])

    answers = json.loads(reply.body or b"")
    assert len(reply.body or b"") < 100_000
    assert [each["id"] for each in answers] == [*sizes, None]
    assert ["result" in each for each in answers] == [*([True] * 8), *([False] * 12), True, False]
    assert answers[8]["error"]["code"] == -31413
    assert "no room" in answers[8]["error"]["data"]["description"]


async def test_a_notification_that_fails_is_kept_in_the_log_alone(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "holdfast.gateway")

    answer = await desk.send({"jsonrpc": "2.0", "method": "notify_hello", "params": {"number": "seven"}})

    assert answer is None
    assert any("a notification failed" in line and "`number`" in line for line in caplog.messages)


@pytest.mark.req("ENG-08")
async def test_what_is_too_much_is_refused_in_one_answer(desk: Desk) -> None:
    deep = await desk.send(b'{"jsonrpc":"2.0","method":"sum","id":1,"params":' + b"[" * 1000 + b"]" * 1000 + b"}")
    large = await desk.send(b'{"jsonrpc":"2.0","method":"sum","id":1,"params":["' + b"x" * 10_000_000 + b'"]}')
    long = await desk.send(b"[" + b"1," * 9_999 + b"1]")

    assert [each["error"]["code"] for each in (deep, large, long)] == [-32700, -31413, -32600]
    assert [each["error"]["data"]["statusCode"] for each in (deep, large, long)] == [400, 413, 400]
    assert [each["id"] for each in (deep, large, long)] == [None] * 3


@pytest.mark.req("ENG-08")
async def test_half_a_character_is_taken_as_it_is_but_not_in_a_name(desk: Desk) -> None:
    value = await desk.call(CREATE_ORDER, {"parcel": "\ud83d"})
    name = await desk.call(CREATE_ORDER, {"parcel": "AB", "\ud83d": 1})

    assert value["order"]["parcel"] == "\ud83d"
    assert name["code"] == -32602
