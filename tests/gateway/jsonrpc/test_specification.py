"""The examples of the JSON-RPC 2.0 specification, section 7."""

from typing import Any

import pytest

from tests.gateway.jsonrpc.conftest import Desk, Shop

pytestmark = pytest.mark.req("RPC-02")

NO_REQUEST = (-32600, None)


def request(method: str, params: Any = None, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params}), **more}


def error_of(answer: dict[str, Any]) -> tuple[int, Any]:
    assert set(answer) == {"jsonrpc", "error", "id"}
    assert answer["jsonrpc"] == "2.0"
    return answer["error"]["code"], answer["id"]


async def test_params_come_by_place_and_by_name(desk: Desk) -> None:
    answers = [
        await desk.send(request("subtract", params, id=id))
        for id, params in enumerate(
            ([42, 23], [23, 42], {"subtrahend": 23, "minuend": 42}, {"minuend": 42, "subtrahend": 23}), 1
        )
    ]

    assert answers == [{"jsonrpc": "2.0", "result": result, "id": id} for id, result in enumerate((19, -19, 19, 19), 1)]


async def test_a_notification_is_run_and_not_answered_whether_there_is_its_method_or_not(
    desk: Desk, shop: Shop
) -> None:
    answers = [await desk.send(request("notify_hello", [7])), await desk.send(request("foobar"))]

    assert answers == [None, None]
    assert shop.heard == [7]


async def test_what_is_no_call_of_a_method_is_an_error_that_says_so(desk: Desk) -> None:
    unknown = await desk.send(request("foobar", id="1"))
    no_json = await desk.send(b'{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]')
    no_request = await desk.send({"jsonrpc": "2.0", "method": 1, "params": "bar"})

    assert error_of(unknown) == (-32601, "1")
    assert error_of(no_json) == (-32700, None)
    assert error_of(no_request) == NO_REQUEST
    assert [each["error"]["message"] for each in (unknown, no_json, no_request)] == [
        "Method not found", "Parse error", "Invalid Request",
    ]  # fmt: skip


async def test_a_batch_that_is_none_is_one_error_and_one_of_no_requests_an_error_for_each(desk: Desk) -> None:
    half = b'[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}, {"jsonrpc": "2.0", "method"]'

    assert error_of(await desk.send(half)) == (-32700, None)
    assert error_of(await desk.send([])) == NO_REQUEST
    assert [error_of(each) for each in await desk.send([1])] == [NO_REQUEST]
    assert [error_of(each) for each in await desk.send([1, 2, 3])] == [NO_REQUEST] * 3


async def test_a_batch_is_answered_but_for_its_notifications(desk: Desk, shop: Shop) -> None:
    batch = [
        request("sum", [1, 2, 4], id="1"),
        request("notify_hello", [7]),
        request("subtract", [42, 23], id="2"),
        {"foo": "boo"},
        request("foo.get", {"name": "myself"}, id="5"),
        request("get_data", id="9"),
    ]

    answers = await desk.send(batch)

    assert answers[0] == {"jsonrpc": "2.0", "result": 7, "id": "1"}
    assert answers[1] == {"jsonrpc": "2.0", "result": 19, "id": "2"}
    assert error_of(answers[2]) == NO_REQUEST
    assert error_of(answers[3]) == (-32601, "5")
    assert answers[4:] == [{"jsonrpc": "2.0", "result": ["hello", 5], "id": "9"}]
    assert shop.heard == [7]


async def test_a_batch_of_notifications_is_not_answered_at_all(desk: Desk, shop: Shop) -> None:
    reply = await desk.reply([request("notify_hello", [1]), request("notify_hello", [2])])

    assert (reply.body, reply.status) == (None, 204)
    assert sorted(shop.heard) == [1, 2]
