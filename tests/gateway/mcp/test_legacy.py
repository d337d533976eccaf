"""Messages of the older versions: what they are, what they may be together, how a session begins."""

from typing import Any

import pytest

from holdfast.gateway.mcp.legacy.messages import BATCHES, Initialization, Posted, kind_of
from holdfast.gateway.mcp.legacy.stored_streams import encode_given_up, position_of
from holdfast.mcp.protocol import LEGACY, McpError

PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
NOTE: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/initialized"}
ANSWER: dict[str, Any] = {"jsonrpc": "2.0", "id": "q", "result": {}}


@pytest.mark.req("MCP-01")
def test_a_message_is_a_request_a_notification_or_a_response() -> None:
    assert [kind_of(each) for each in (PING, {**PING, "id": "a"}, NOTE, ANSWER)] == [
        "request",
        "request",
        "notification",
        "response",
    ]
    wrong: list[Any] = [None, 7, "x", [], {}, {**PING, "jsonrpc": 2}, {**PING, "id": True}, {**PING, "id": 1.5}]
    wrong += [{**PING, "params": None}, {**PING, "method": 7}, {**ANSWER, "error": {}}, {"jsonrpc": "2.0", "id": 1}]
    for message in wrong:
        with pytest.raises(McpError):
            kind_of(message)


@pytest.mark.req("MCP-01")
def test_several_messages_at_once_are_of_one_version_only() -> None:
    posted = Posted.of([PING, NOTE, ANSWER], BATCHES, most=3)

    assert (posted.requests, posted.others, posted.batch) == ([PING], [NOTE, ANSWER], True)
    assert Posted.of(PING, LEGACY[0], most=1) == Posted([PING], [], batch=False)
    initialize = {**PING, "method": "initialize"}
    for given, version in [([PING], LEGACY[0]), ([], BATCHES), ([PING] * 4, BATCHES), ([initialize], BATCHES)]:
        with pytest.raises(McpError):
            Posted.of(given, version, most=3)


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize("version", [*LEGACY, "2099-01-01"])
def test_a_session_has_the_version_of_its_client_or_our_newest(version: str) -> None:
    said: dict[str, Any] = {"protocolVersion": version, "capabilities": {"roots": {}}, "clientInfo": {"name": "old"}}

    hello = Initialization.of({**PING, "params": said})

    assert hello.version == (version if version in LEGACY else LEGACY[0])
    assert hello.answer["protocolVersion"] == hello.version
    assert hello.client == {"capabilities": {"roots": {}}, "info": {"name": "old"}}
    missing: list[dict[str, Any]] = [{k: v for k, v in said.items() if k != left} for left in said]
    for params in (*missing, {**said, "clientInfo": {"name": "x" * 70_000}}):
        with pytest.raises(McpError):
            Initialization.of({**PING, "params": params})


@pytest.mark.req("MCP-01")
def test_where_a_stream_goes_on_is_read_from_an_id_or_it_is_none() -> None:
    stream = "0" * 32

    assert position_of(f"{stream}.12") == (stream, 12)
    for wrong in ("", ".", stream, f"{stream}.", f"{stream}.-1", f"{stream}.{'9' * 30}", f"x{stream}.1", "listen.1"):
        assert position_of(wrong) is None


@pytest.mark.req("MCP-08")
def test_those_whose_requests_were_given_up_are_told_for_each() -> None:
    assert encode_given_up(7).startswith(b'{"jsonrpc":"2.0","id":7,"error":')
    assert encode_given_up([7, "a"]).startswith(b'[{"jsonrpc":"2.0","id":7,"error":')
    assert b'"id":"a"' in encode_given_up([7, "a"])
