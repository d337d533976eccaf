"""Calls through the gateway and its resources and prompts: each has an entry in the audit before it is answered."""

import asyncio
from typing import Any

import pytest

from holdfast import App, Run
from holdfast.audit.audit import RecordedEntry
from holdfast.core.audit_settings import AuditSettings
from holdfast.core.config import Config
from holdfast.core.errors import DatabaseAway, Forbidden, NotFound, Unavailable
from holdfast.engine import Engine
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.jsonrpc.dispatcher import Dispatcher
from holdfast.gateway.jsonrpc.envelopes import EnvelopeCalls
from holdfast.mcp.protocol import McpError
from holdfast.skills.client import InputRequired
from tests.agents.stage import Player, calls, ended
from tests.gateway.shop import MEMBER, Person, ask, caller, shop

pytestmark = pytest.mark.req("MCP-07", "SAFE-07")

LIMIT = 30
held = asyncio.Event()


@pytest.fixture
def kept() -> tuple[str, ...]:
    """Tools whose arguments are kept; parametrise it to change them."""
    return ()


@pytest.fixture
def config(config: Config, kept: tuple[str, ...]) -> Config:
    """The settings, with those of the audit."""
    return config.model_copy(update={"audit": AuditSettings(keep_arguments=kept)})


@pytest.fixture
def app() -> App:
    """The shop, with a tool that ends only when it is cancelled, and one that fails."""
    app = shop()

    @app.tool(idempotent=True)
    async def wait(run: Run) -> str:
        """Wait."""
        held.set()
        await asyncio.Event().wait()
        return "never"

    @app.tool(idempotent=True)
    async def fail() -> str:
        """Fail."""
        raise ValueError("no")

    @app.service("shop.example/till/settle/1.0")
    async def settle(bill: str) -> str:
        """Settle a bill."""
        return f"{bill} is settled"

    return app


async def newest(engine: Engine) -> RecordedEntry:
    """The newest entry."""
    return (await engine.audit.list(limit=1))[0]


async def test_a_call_has_an_entry_with_its_caller_and_its_outcome(gateway: Gateway) -> None:
    ann = await caller(gateway, agent="support")

    await gateway.call(ann, "track", {"parcel": "P-1"})

    found = await newest(gateway.engine)
    assert (found.action, found.target, found.outcome) == ("tool.call", "track", "done")
    assert (found.user, found.agent, found.via) == ("ann", "support", "engine")
    assert (found.arguments, len(found.arguments_hash)) == (None, 64)
    assert (found.bytes_in, found.bytes_out) == (16, 34)
    assert found.duration_ms is not None
    assert found.duration_ms > 0


async def test_a_failed_call_and_one_with_invalid_arguments_have_entries(gateway: Gateway) -> None:
    ann = await caller(gateway)

    await gateway.call(ann, "fail", {})
    await gateway.call(ann, "track", {"parcel": 7})

    second, first = await gateway.engine.audit.list()
    assert (first.target, first.outcome) == ("fail", "failed")
    assert (second.target, second.outcome, second.code) == ("track", "refused", "invalid_input")


async def test_a_call_of_a_tool_that_the_caller_does_not_see_has_an_entry(gateway: Gateway) -> None:
    with pytest.raises(NotFound):
        await gateway.call(await caller(gateway), "absent", {"any": "thing"})

    found = await newest(gateway.engine)
    assert (found.target, found.outcome, found.code, found.user) == ("absent", "refused", "not_found", "ann")


async def test_a_call_by_another_tool_has_the_entry_of_the_tool_that_ran(gateway: Gateway) -> None:
    ann = await caller(gateway)

    await gateway.call(ann, "call_tool", {"name": "track", "arguments": {"parcel": "P-1"}})
    await gateway.call(ann, "call_tool", {"name": "absent"})

    second, first = await gateway.engine.audit.list()
    assert (first.target, first.outcome) == ("track", "done")
    assert (second.target, second.outcome, second.code) == ("call_tool", "refused", "not_found")


async def test_a_call_that_a_person_does_not_allow_has_an_entry(gateway: Gateway) -> None:
    clerk = await caller(gateway, scopes=MEMBER, agent="clerk")

    with pytest.raises(Forbidden):
        await gateway.call(clerk, "refund", {"order": "A-1"}, client=Person(holdfast_approval={}))

    found = await newest(gateway.engine)
    assert (found.target, found.outcome, found.code, found.agent) == ("refund", "refused", "forbidden", "clerk")


async def test_a_call_that_waits_for_its_client_has_an_entry_and_another_when_it_is_made_again(
    gateway: Gateway,
) -> None:
    class Asks(Person):
        async def elicit(self, name: str, message: str, schema: Any) -> Any:
            raise InputRequired({})

    ann = await caller(gateway)
    with pytest.raises(InputRequired):
        await gateway.call(ann, "ship", {"order": "A-1"}, client=Asks())
    await gateway.call(ann, "ship", {"order": "A-1"}, client=Person(where={"city": "Bonn"}))

    assert [found.outcome for found in await gateway.engine.audit.list()] == ["done", "waiting"]


async def test_a_cancelled_call_has_an_entry(gateway: Gateway) -> None:
    held.clear()
    calling = asyncio.create_task(gateway.call(await caller(gateway), "wait", {}))
    async with asyncio.timeout(LIMIT):
        await held.wait()

    calling.cancel()
    await asyncio.wait([calling])
    await gateway.call(await caller(gateway), "track", {"parcel": "P-1"})

    assert [(found.target, found.outcome) for found in await gateway.engine.audit.list()] == [
        ("track", "done"), ("wait", "cancelled"),
    ]  # fmt: skip


@pytest.mark.parametrize("kept", [("track", "re*")])
async def test_arguments_are_kept_of_the_tools_that_the_settings_name_without_secrets(gateway: Gateway) -> None:
    ann = await caller(gateway)

    await gateway.call(ann, "refund", {"order": "A-1", "amount": 2})
    await gateway.call(ann, "ship", {"order": "A-1"}, client=Person(where={"city": "Bonn"}))
    await gateway.call(ann, "track", {"parcel": "P-1", "deep": [{"API_Token": "t0p"}], "password": "s3cret"})

    refused, shipped, refunded = await gateway.engine.audit.list()
    assert refunded.arguments == {"order": "A-1", "amount": 2}
    assert shipped.arguments is None
    assert refused.arguments == {"parcel": "P-1", "deep": [{"API_Token": "[secret]"}], "password": "[secret]"}


async def test_resources_and_prompts_that_are_read_have_entries(gateway: Gateway) -> None:
    ann = await caller(gateway)

    await ask(gateway, ann, "resources/read", {"uri": "shop://hours"})
    with pytest.raises(McpError):
        await ask(gateway, ann, "resources/read", {"uri": "shop://absent/x/y/z"})
    await ask(gateway, ann, "prompts/get", {"name": "greet"})

    prompt, absent, hours = await gateway.engine.audit.list()
    assert (hours.action, hours.target, hours.outcome) == ("resource.read", "shop://hours", "done")
    assert (absent.target, absent.outcome, absent.code) == ("shop://absent/x/y/z", "refused", "not_found")
    assert (prompt.action, prompt.target, prompt.user) == ("prompt.get", "greet", "ann")


async def test_calls_over_json_rpc_and_the_old_envelope_have_entries(gateway: Gateway) -> None:
    rpc = Dispatcher(gateway, await caller(gateway), request_id="r", envelopes=EnvelopeCalls())
    parts = b'{"host":"shop.example","service":"till","action":"%s","version":"1.0","data":{"bill":"7"}}'

    await rpc.dispatch(b'{"jsonrpc":"2.0","id":1,"method":"track","params":{"parcel":"P"}}')
    await rpc.dispatch(b'{"jsonrpc":"2.0","id":1,"method":"absent","params":[1]}')
    await rpc.dispatch(parts % b"settle")
    await rpc.dispatch(parts % b"drop")

    found = [(each.target, each.outcome) for each in await gateway.engine.audit.list()]
    assert found[-2:] == [("absent", "refused"), ("track", "done")]
    assert [outcome for _, outcome in found[:2]] == ["refused", "done"]
    assert found[0][0] == "shop.example/till/drop/1.0"


async def test_a_direct_call_has_an_entry(served: Engine) -> None:
    await served.executions.call("track", {"parcel": "P-1"}, user="bob", agent="support")

    found = await newest(served)
    assert (found.target, found.outcome, found.user, found.agent) == ("track", "done", "bob", "support")


async def test_calls_of_an_agent_s_turn_have_entries(served: Engine, model: Player) -> None:
    model.says(calls(("track", {"parcel": "P-1"})), "In Cologne.")

    await ended(served, await served.agents.send("support", "Where is P-1?", user="ann"))

    found = await newest(served)
    assert (found.target, found.outcome, found.user, found.agent, found.via) == (
        "track", "done", "ann", "support", "agent",
    )  # fmt: skip


async def test_a_call_whose_entry_cannot_be_written_is_not_answered_and_the_next_is_not_made(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, ran = gateway.engine.recorder.run, 0

    async def counted(*args: Any, **more: Any) -> Any:
        nonlocal ran
        ran += 1
        return await run(*args, **more)

    async def away(*_: object) -> None:
        raise DatabaseAway("the database does not respond")

    ann = await caller(gateway)
    await gateway.tools(ann)
    monkeypatch.setattr(gateway.engine.recorder, "run", counted)
    monkeypatch.setattr(gateway.engine.database, "run", away)
    monkeypatch.setattr(gateway.engine.database, "now", away)

    with pytest.raises(Unavailable, match=r"could not be recorded.*may have taken effect"):
        await gateway.call(ann, "track", {"parcel": "P-1"})
    for _ in range(3):
        with pytest.raises(Unavailable, match="nothing is done without it"):
            await gateway.call(ann, "track", {"parcel": "P-2"})

    assert ran == 1


async def test_calls_of_an_agent_s_turn_that_are_refused_have_entries(served: Engine, model: Player) -> None:
    model.says(calls(("absent", {"any": "thing"})), calls(("track", {"parcel": 7})), "Sorry.")

    await ended(served, await served.agents.send("support", "Where is P-1?", user="ann"))

    arguments, absent = await served.audit.list()
    assert (absent.target, absent.outcome, absent.code) == ("absent", "refused", "not_found")
    assert (arguments.target, arguments.outcome, arguments.code) == ("track", "refused", "invalid_input")
    assert (arguments.user, arguments.agent, arguments.via) == ("ann", "support", "agent")
