import asyncio
from typing import Any

import pytest

from holdfast.engine import Engine
from tests.server.conftest import make_key
from tests.server.wire import Reply, Site

COMMANDS = "/api/commands"
EVENTS = "/api/topics/agent-events/records"
TRANSLATE = {"skill": "translate", "arguments": {"text": "hello"}}


async def submit(site: Site, key: str, **more: Any) -> Reply:
    return await site.ask("POST", COMMANDS, key=key, json={**TRANSLATE, **more})


async def answer(site: Site, key: str, id: str, **outcome: Any) -> Reply:
    """Answer a command as a worker does that knows only the topics."""
    return await site.ask("POST", EVENTS, key=key, json={"key": id, "value": {"correlationId": id, **outcome}})


@pytest.mark.req("EDA-01", "EDA-03")
async def test_a_command_waits_for_a_worker_as_a_row_and_as_a_record(site: Site, key: str) -> None:
    submitted = await submit(site, key, priority=7, correlation_id="c-1", headers={"a": "b"})
    again = await submit(site, key, correlation_id="c-1")
    (record,) = (await site.ask("GET", "/api/topics/agent-commands/records", key=key)).json()["records"]
    found = await site.ask("GET", f"{COMMANDS}/c-1", key=key)

    assert submitted.status == 201
    assert again.json() == submitted.json() == found.json()
    command = found.json()["command"]
    assert (command["state"], command["priority"], command["arguments"]) == ("queued", 7, {"text": "hello"})
    assert (command["headers"]["a"], found.json()["completion"]) == ("b", None)
    assert record["value"] == {
        "correlationId": "c-1",
        "skillName": "translate",
        "arguments": {"text": "hello"},
        "replyTo": "agent-events",
    }


@pytest.mark.req("EDA-01", "EDA-02")
async def test_who_waits_gets_the_result_that_any_worker_publishes(site: Site, key: str) -> None:
    await submit(site, key, correlation_id="c-1")
    asked, waiting = (
        asyncio.create_task(submit(site, key, correlation_id="c-1", wait=30)),
        asyncio.create_task(site.ask("GET", f"{COMMANDS}/c-1?wait=30", key=key)),
    )
    await answer(site, key, "c-1", result={"text": "hallo"})
    done = await asked

    assert (done.status, done.json()) == (201, (await waiting).json())
    assert (done.json()["command"]["state"], done.json()["completion"]["result"]) == ("done", {"text": "hallo"})
    assert (await site.ask("GET", f"{COMMANDS}/c-1", key=key)).json() == done.json()


@pytest.mark.req("EDA-03")
async def test_a_failure_is_part_of_the_answer_and_what_comes_later_is_kept_beside_it(site: Site, key: str) -> None:
    await submit(site, key, correlation_id="c-1")
    await answer(site, key, "c-1", error={"code": "no_dictionary", "message": "there is none"})
    failed = await site.ask("GET", f"{COMMANDS}/c-1?wait=30", key=key)
    await answer(site, key, "c-1", result="late")
    async with asyncio.timeout(30):
        while len(kept := (await site.ask("GET", f"{COMMANDS}/c-1/completions", key=key)).json()["completions"]) < 2:
            pass

    assert (failed.status, failed.json()["command"]["state"]) == (200, "failed")
    assert failed.json()["completion"]["error"] == {"code": "no_dictionary", "message": "there is none"}
    assert [(completion["applied"], completion["result"]) for completion in kept] == [(True, None), (False, "late")]


@pytest.mark.req("EDA-02")
@pytest.mark.parametrize("settings", [{"request_timeout": 1}])
async def test_who_waits_longer_than_a_request_may_is_answered_in_time(
    site: Site, key: str, settings: dict[str, Any]
) -> None:
    submitted = await submit(site, key, wait=3600)

    assert submitted.status == 201
    assert (submitted.json()["command"]["state"], submitted.json()["completion"]) == ("queued", None)


@pytest.mark.req("EDA-03")
async def test_a_cancelled_command_is_finished_and_stays_so(site: Site, key: str) -> None:
    await submit(site, key, correlation_id="c-1")

    cancelled = await site.ask("POST", f"{COMMANDS}/c-1/cancel", key=key)
    again = await site.ask("POST", f"{COMMANDS}/c-1/cancel", key=key)

    assert cancelled.json()["command"]["state"] == "cancelled"
    assert cancelled.json()["completion"]["error"]["code"] == "cancelled"
    assert again.json() == cancelled.json()


async def test_commands_are_listed_by_state_and_skill_page_by_page(site: Site, key: str) -> None:
    for id in ("c-1", "c-2", "c-3"):
        await submit(site, key, correlation_id=id)
    await submit(site, key, skill="resize", correlation_id="c-4")
    await site.ask("POST", f"{COMMANDS}/c-2/cancel", key=key)

    async def ids(query: str) -> list[str]:
        listed = await site.ask("GET", f"{COMMANDS}?{query}", key=key)
        return [command["correlation_id"] for command in listed.json()["commands"]]

    assert await ids("") == ["c-4", "c-3", "c-2", "c-1"]
    assert await ids("state=cancelled") == ["c-2"]
    assert await ids("skill=translate&state=queued") == ["c-3", "c-1"]
    assert await ids("limit=2&before=c-3") == ["c-2", "c-1"]


@pytest.mark.req("BUS-04")
async def test_open_commands_are_measured(site: Site, key: str) -> None:
    for id in ("c-1", "c-2", "c-3"):
        await submit(site, key, correlation_id=id)
    await site.ask("POST", f"{COMMANDS}/c-3/cancel", key=key)

    measured = (await site.ask("GET", "/metrics", key=key)).body.decode().splitlines()

    assert [line for line in measured if line.startswith("holdfast_commands{")] == [
        'holdfast_commands{skill="translate",state="queued",tenant="default"} 2.0'
    ]


async def test_the_trace_of_a_request_is_carried_on(site: Site, key: str) -> None:
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    await site.ask("POST", COMMANDS, key=key, json={**TRANSLATE, "correlation_id": "c-1"}, headers=trace)
    await site.ask("POST", EVENTS, key=key, json={"value": {"correlationId": "c-0"}}, headers=trace)

    for topic in ("agent-commands", "agent-events"):
        (record,) = (await site.ask("GET", f"/api/topics/{topic}/records", key=key)).json()["records"]
        assert record["headers"]["traceparent"] == trace["traceparent"]


@pytest.mark.req("SAFE-03", "ENG-04")
async def test_commands_are_for_who_administers_their_tenant(engine: Engine, site: Site, key: str) -> None:
    await submit(site, key, correlation_id="c-1")
    await engine.tenants.create("acme")
    users = await make_key(engine, "bob", scopes=["read", "write"])
    others = await make_key(engine, "eve", tenant="acme")
    one = [("GET", "/c-1"), ("GET", "/c-1/completions"), ("POST", "/c-1/cancel")]

    for method, path in [*one, ("GET", ""), ("POST", "")]:
        body = TRANSLATE if not path and method == "POST" else None
        assert (await site.ask(method, COMMANDS + path, key=users, json=body)).status == 403, (method, path)
    for method, path in one:
        assert (await site.ask(method, COMMANDS + path, key=others)).status == 404, (method, path)
    assert (await site.ask("GET", COMMANDS, key=others)).json() == {"commands": [], "cursor": None}


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"skill": ""}, 400),
        ({"skill": "translate", "arguments": [1]}, 400),
        ({"skill": "translate", "correlation_id": ""}, 400),
        ({"skill": "translate", "reply_to": "a.b"}, 400),
        ({"skill": "translate", "reply_to": "agent-commands"}, 400),
        ({"skill": "translate", "wait": -1}, 400),
        ({"skill": "translate", "priority": 2**40}, 400),
        ({"skill": "translate", "max_attempts": 3_000_000_000}, 400),
        ({"skill": "other", "correlation_id": "c-1"}, 409),
        ({"skill": "translate", "arguments": {"text": "x" * 1_000_000}}, 413),
    ],
)
async def test_a_command_that_cannot_be_submitted_is_a_clear_problem(
    site: Site, key: str, body: Any, status: int
) -> None:
    await submit(site, key, correlation_id="c-1")

    reply = await site.ask("POST", COMMANDS, key=key, json=body)

    assert reply.status == status
    assert reply.code


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize("path", ["/nope", "/nope/completions", "?before=nope"])
async def test_a_command_that_there_is_not_is_told(site: Site, key: str, path: str) -> None:
    reply = await site.ask("GET", COMMANDS + path, key=key)

    assert (reply.status, reply.code) == (404, "not_found")
    assert "`holdfast commands ls`" in reply.json()["next"]


@pytest.mark.req("EDA-01")
@pytest.mark.parametrize(
    ("id", "path"), [("a/b", "a%252Fb"), ("50%", "50%2525"), ("%2F", "%25252F"), ("a b", "a%20b"), ("50%", "50%25")]
)
async def test_an_address_carries_any_id(site: Site, key: str, id: str, path: str) -> None:
    await submit(site, key, correlation_id=id)

    found = await site.ask("GET", f"{COMMANDS}/{path}", key=key)
    completions = await site.ask("GET", f"{COMMANDS}/{path}/completions", key=key)
    cancelled = await site.ask("POST", f"{COMMANDS}/{path}/cancel", key=key)

    assert found.json()["command"]["correlation_id"] == id
    assert completions.json() == {"completions": []}
    assert cancelled.json()["command"]["state"] == "cancelled"


async def test_a_state_that_there_is_not_is_refused(site: Site, key: str) -> None:
    assert (await site.ask("GET", f"{COMMANDS}?state=lost", key=key)).status == 400
