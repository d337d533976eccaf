import json
import logging
from typing import Any

import pytest

from holdfast.core.ids import TenantId, uuid7
from holdfast.gateway.jsonrpc.envelopes import EnvelopeCalls
from tests.gateway.jsonrpc.conftest import CREATE_ORDER, Desk

pytestmark = pytest.mark.req("RPC-01", "RPC-03")


def envelope(action: str = "createOrder", **more: Any) -> dict[str, Any]:
    return {"host": "shop.example", "service": "market", "action": action, "version": "1.0", **more}


async def test_an_envelope_is_answered_with_what_the_service_gives(desk: Desk) -> None:
    sent = envelope(data={"parcel": "AB"}, title="Order", success="/app/success", failure="/app/failure")

    reply = await desk.reply(sent)

    assert reply.status == 200
    assert json.loads(reply.body or b"") == {"order": {"parcel": "AB", "amount": 1}, "for": "ann"}


async def test_an_envelope_that_fails_is_answered_with_the_status_object_under_its_status(desk: Desk) -> None:
    replies = {
        400: await desk.reply(envelope(data={"amount": 2})),
        403: await desk.reply(envelope("cancelOrder", data={"order": "foreign"})),
        404: await desk.reply(envelope("deleteOrder")),
        500: await desk.reply(envelope("cancelOrder", data={"order": "broken"})),
    }
    malformed = await desk.reply({"host": "shop.example", "service": 1, "data": {}})
    without = await desk.send({"data": {"parcel": "AB"}})

    for status, reply in replies.items():
        told = json.loads(reply.body or b"")
        assert (reply.status, told["statusCode"], told["severity"]) == (status, status, "ERROR")
        assert set(told) == {"statusCode", "code", "message", "description", "severity"}
    assert b"secret" not in (replies[500].body or b"")
    assert (malformed.status, json.loads(malformed.body or b"")["code"]) == (400, "invalid_input")
    assert (without["error"]["code"], without["id"]) == (-32600, None)


async def test_envelopes_are_counted_by_service_and_told_in_the_log_now_and_then(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "holdfast.gateway.jsonrpc.envelopes")

    for action in ("createOrder", "createOrder", "deleteOrder", "renameOrder"):
        await desk.reply(envelope(action, data={"parcel": "AB"}))

    tenant = desk.caller.tenant
    assert desk.envelopes.counts(tenant) == {(tenant, CREATE_ORDER): 2, (tenant, "unknown"): 2}
    assert [line.split()[1] for line in caplog.messages if line.startswith("deprecated")] == [CREATE_ORDER, "unknown"]


@pytest.mark.parametrize("settings", [{"legacy_envelope": False}])
async def test_where_envelopes_are_switched_off_they_are_refused_and_say_what_to_send(desk: Desk) -> None:
    answer = await desk.send(envelope(data={"parcel": "AB"}))

    assert (answer["error"]["code"], answer["id"]) == (-32600, None)
    assert "switched off" in answer["error"]["data"]["description"]
    assert desk.envelopes.counts() == {}
    assert await desk.call(CREATE_ORDER, {"parcel": "AB"}) == {"order": {"parcel": "AB", "amount": 1}, "for": "ann"}


def test_a_tenant_is_told_of_its_own_calls_alone() -> None:
    one, other = TenantId(uuid7()), TenantId(uuid7())
    calls = EnvelopeCalls()

    calls.note(one, "a/b/c/d")
    calls.note(other, "a/b/c/d")

    assert calls.counts(one) == {(one, "a/b/c/d"): 1}
    assert len(calls.counts()) == 2
