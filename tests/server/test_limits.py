"""Limits over HTTP, JSON-RPC and WebSockets."""

from typing import Any
from urllib.parse import urlencode

import pytest

from holdfast.quotas import Spend
from tests.agents.stage import Player
from tests.server import mcp_wire
from tests.server.chatting import say
from tests.server.conftest import make_key
from tests.server.socket_client import client
from tests.server.wire import Reply, Site

pytestmark = pytest.mark.req("MCP-07")

HOURLY = "each user: requests per hour"


async def limit(site: Site, rule: str, *, key: str | None = None, **more: Any) -> Reply:
    """Set a limit."""
    return await site.ask("PUT", "/api/limits", key=key, json={"rule": rule, **more})


async def remove(site: Site, name: str, *, key: str | None = None, **more: str) -> Reply:
    """Remove a limit."""
    return await site.ask("DELETE", f"/api/limits?{urlencode({'name': name, **more})}", key=key)


async def test_limits_are_set_listed_and_removed(site: Site) -> None:
    made = await limit(site, "each user: 60 requests an hour, burst 5")
    again = await limit(site, "each user: 90 requests per hour")
    operators = await limit(site, "each user: 900 requests per hour", key=site.file.token, as_operator=True)
    listed = (await site.ask("GET", "/api/limits")).json()["limits"]
    removed = await remove(site, HOURLY)
    kept = await remove(site, "each user: 900 requests per hour")
    gone = await remove(site, "user zoe: requests per hour")
    last = await remove(site, HOURLY, key=site.file.token, as_operator="true")

    assert (made.status, again.status, operators.status) == (200, 200, 200)
    assert (made.json()["rule"], made.json()["burst"]) == ("each user: 60 requests per hour, burst 5", 5)
    assert [(each["name"], each["origin"], each["amount"], each["updated_by"]) for each in listed] == [
        (HOURLY, "operator", 900, "local"), (HOURLY, "tenant", 90, "local"),
    ]  # fmt: skip
    assert (removed.status, kept.status, kept.code, gone.status, last.status) == (204, 403, "forbidden", 404, 204)
    assert (await site.ask("GET", "/api/limits")).json() == {"limits": []}


@pytest.mark.parametrize("rule", ["", "each user", "each user: 5 requests per week", "x" * 2000])
async def test_a_text_that_is_no_limit_is_refused_and_changes_nothing(site: Site, rule: str) -> None:
    refused = await limit(site, rule)

    assert (refused.status, refused.code) == (400, "invalid_input")
    assert (await site.ask("GET", "/api/limits")).json() == {"limits": []}


@pytest.mark.parametrize("name", ["ann\ud800", "ann\0", 'a "quoted" name', "日本"])
async def test_a_limit_may_name_anybody(site: Site, name: str) -> None:
    limits = await site.engine.quotas.limits()
    text = name.replace('"', '\\"')

    made = await limits.set(f'user "{text}": 100 requests per hour', by=name)
    budget = await limits.set(f'user "{text}": 100 tokens per hour', by=name)
    (await site.engine.quotas.admit((name, None, None, "track"))).end()
    await (await site.engine.quotas.budgets()).reserve(Spend(7, 0), user=name, agent=None)

    assert [(each.rule, each.updated_by) for each in await limits.list()] == [(made.rule, name), (budget.rule, name)]
    assert {each.subject for each in await site.engine.quotas.usage(most=9)} == {made.name.partition(": requests")[0]}
    assert (await site.ask("GET", "/api/limits")).status == 200


async def test_a_refused_call_is_a_429_with_the_limit_and_when_to_come_back(desk: Site) -> None:
    key = await make_key(desk.engine)
    await desk.ask("PUT", "/api/limits", key=key, json={"rule": "each user: 1 requests per hour"})
    call = {"arguments": {"parcel": "7"}}

    done = await desk.ask("POST", "/api/tools/track/call", key=key, json=call)
    refused = await desk.ask("POST", "/api/tools/track/call", key=key, json=call)
    metrics = (await desk.ask("GET", "/metrics", key=key)).body.decode()

    assert (done.status, done.json()["status"]) == (200, "done")
    assert (refused.status, refused.code) == (429, "rate_limited")
    assert 3500 < int(refused.headers["retry-after"]) <= 3600
    assert refused.json()["details"]["limit"] == HOURLY
    assert f'holdfast_limit_refusals_total{{limit="{HOURLY}",tenant="default"}} 1.0' in metrics


async def test_a_refused_method_of_json_rpc_says_the_limit_and_when_to_come_back(desk: Site) -> None:
    await limit(desk, "tool track: 1 requests per hour")
    message = {"jsonrpc": "2.0", "method": "track", "params": {"parcel": "7"}, "id": 1}

    await desk.ask("POST", "/rpc", json=message)
    error = (await desk.ask("POST", "/rpc", json=message)).json()["error"]

    assert (error["code"], error["message"]) == (-31429, "Rate limited")
    assert (error["data"]["code"], error["data"]["limit"]) == ("rate_limited", "tool track: requests per hour")
    assert 3500 < error["data"]["retryAfter"] <= 3600


async def test_every_entry_point_uses_the_same_limit(desk: Site) -> None:
    await limit(desk, "each user: 6 requests per hour")
    arguments = {"parcel": "7"}
    message = {"jsonrpc": "2.0", "method": "track", "params": arguments}
    session = await mcp_wire.begin(desk)

    async def statuses() -> list[bool]:
        http = await desk.ask("POST", "/api/tools/track/call", json={"arguments": arguments})
        modern = await mcp_wire.call(desk, "track", arguments)
        wrapped = await mcp_wire.call(desk, "call_tool", {"name": "track", "arguments": arguments})
        called = mcp_wire.legacy("tools/call", {"name": "track", "arguments": arguments})
        legacy = await mcp_wire.post(desk, session, called)
        batch = await desk.ask("POST", "/rpc", json=[{**message, "id": 1}, {**message, "id": 2}])
        results = [reply.json()["result"]["isError"] for reply in (modern, wrapped, legacy)]
        return [http.status == 429, *results, *("error" in each for each in batch.json())]

    first, second = await statuses(), await statuses()

    assert (first, second) == ([False] * 6, [True] * 6)


async def test_a_message_to_an_agent_is_a_request_of_its_key(desk: Site) -> None:
    ann, bob = await make_key(desk.engine), await make_key(desk.engine, "bob")
    await desk.ask("PUT", "/api/limits", key=ann, json={"rule": "each key: 1 requests per hour"})

    first = await say(desk, "Hello", key=ann)
    refused = await say(desk, "Hello", key=ann, session_id="web-2")
    other = await say(desk, "Hello", key=bob)

    assert (first.status, other.status) == (200, 200)
    assert (refused.status, refused.code) == (429, "rate_limited")
    assert await desk.engine.conversations.find(session_id="web-2") is None


async def test_a_message_too_many_on_a_socket_is_refused_and_the_socket_stays_open(desk: Site) -> None:
    await limit(desk, "agent support: 1 requests per hour")
    async with client(desk) as ann:
        await ann.send("message", text="Hello")
        await ann.until("done")

        await ann.send("message", text="Hello again", key="m-2")
        refused = (await ann.until("refused"))[-1]
        await remove(desk, "agent support: requests per hour")
        await ann.send("message", text="Hello at last")

        assert (await ann.until("done"))[-1]["kind"] == "done"

    assert (refused["code"], refused["key"]) == ("rate_limited", "m-2")
    assert "the limit of agent support is reached" in refused["message"]
    assert refused["details"]["limit"] == "agent support: requests per hour"
    assert 3500 < refused["details"]["retry_after"] <= 3600


@pytest.mark.req("AGENT-10")
async def test_a_spent_budget_is_a_429_of_the_chat_and_is_shown_as_used(desk: Site, model: Player) -> None:
    await limit(desk, "each user: 500 tokens per day")
    model.says({"text": "Hello.", "usage": {"input_tokens": 450, "output_tokens": 100}})
    await say(desk, "Hello")

    refused = await say(desk, "Hello again")
    usage = (await desk.ask("GET", "/api/limits/usage")).json()["usage"]
    models = (await desk.ask("GET", "/api/limits/models?days=1")).json()["usage"]
    metrics = (await desk.ask("GET", "/metrics")).body.decode()

    assert (refused.status, refused.code) == (429, "budget_spent")
    assert 0 < int(refused.headers["retry-after"]) <= 86_400
    assert refused.json()["details"]["limit"] == "each user: tokens per day"
    assert [(each["limit"], each["subject"], each["used"], each["warned"]) for each in usage] == [
        ("each user: tokens per day", "user local", 550, True)
    ]
    assert [(each["user"], each["agent"], each["calls"], each["output_tokens"]) for each in models] == [
        ("local", "support", 1, 100)
    ]
    assert 'holdfast_budget_warnings_total{limit="each user: tokens per day",tenant="default"} 1.0' in metrics
    assert 'holdfast_limit_refusals_total{limit="each user: tokens per day",tenant="default"} 1.0' in metrics


async def test_usage_can_be_asked_for_one_limit(site: Site) -> None:
    await limit(site, "each user: 60 requests per hour")
    await limit(site, "tool track: 5 concurrent calls")
    (await site.engine.quotas.admit(("ann", None, None, "track"))).end()

    usage = (await site.ask("GET", f"/api/limits/usage?{urlencode({'name': 'tool track: concurrent calls'})}")).json()
    wrong = await site.ask("GET", "/api/limits/usage?name=nothing")

    assert [(each["limit"], each["used"]) for each in usage["usage"]] == [("tool track: concurrent calls", 1)]
    assert (wrong.status, wrong.code) == (400, "invalid_input")
