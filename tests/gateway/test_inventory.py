import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest

from holdfast.audit.writer import sql as add_to_audit
from holdfast.core.config import Config
from holdfast.core.errors import DatabaseAway, Forbidden, NotFound
from holdfast.engine import Engine, open_engine
from holdfast.gateway import inventory
from holdfast.gateway.builtin import own_tools
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.gateways import Gateways
from holdfast.gateway.inventory import READ_ANEW, Inventory
from holdfast.gateway.offerings import Offerings
from holdfast.quotas import tenant_limits
from tests.gateway.shop import MEMBER, Person, ask, caller

SECOND = 1.0  # within which a change is seen
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
BY_SQL = """
insert into tool_t (host_id, name, description, implementation_type)
select $1, 'tool_' || n, 'A tool.', 'function' from generate_series(1, $2) n
"""


class Counted:
    """Counts the statements that a database is sent."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[str] = []
        for method in ("one", "all", "value", "run"):
            monkeypatch.setattr(engine.database, method, self._counted(getattr(engine.database, method)))

    def _counted(self, send: Any) -> Any:
        def counted(statement: str, *args: object) -> Any:
            self.sent.append(statement)
            return send(statement, *args)

        return counted


async def seen(gateway: Gateway, **who: Any) -> set[str]:
    """The registered tools that somebody sees."""
    view = await gateway.tools(await caller(gateway, **who))
    return {each.name for each in view.tools if not each.own}


async def settled() -> None:
    """Wait until nothing is read anew."""
    async with asyncio.timeout(20):
        await asyncio.gather(
            *(task for task in asyncio.all_tasks() if task.get_name().startswith("holdfast gateway inventory"))
        )


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets time go by for what is kept."""
    passed = 0.0

    def wait(seconds: float) -> None:
        nonlocal passed
        passed += seconds

    monkeypatch.setattr(inventory, "monotonic", lambda: monotonic() + passed)
    return wait


@pytest.fixture
def quiet(served: Engine) -> Gateway:
    """A gateway whose database nobody else asks."""
    engine = served.tenant("default")
    assert engine.database is not served.database
    return Gateway(engine, Inventory(engine, own_tools(engine)), Offerings(engine))


@pytest.mark.req("MCP-07", "MCP-10")
async def test_what_another_process_changes_is_seen_within_a_second(
    gateway: Gateway, config: Config, later: Callable[[float], None]
) -> None:
    program = await seen(gateway)
    async with open_engine(config=config) as other:
        await other.tools.put("more", description="More.", parameters=NOTHING, kind="function", reference="shop:more")
        later(SECOND)
        assert await seen(gateway) == program | {"more"}

        await other.tools.activate("more", False)
        later(SECOND)
        assert await seen(gateway) == program
    with pytest.raises(NotFound):
        await gateway.call(await caller(gateway), "more", {})


@pytest.mark.req("MCP-07")
async def test_what_an_agent_is_defined_with_is_seen_within_a_second(
    gateway: Gateway, config: Config, later: Callable[[float], None]
) -> None:
    async with open_engine(config=config) as other:
        made = await other.definitions.put("helper", instructions="Help.", tools=["track"])
        later(SECOND)
        assert await seen(gateway, agent="helper") == {"track"}

        changed = await other.definitions.put(
            "helper", instructions="Help.", tools=["track", "refund"], version=made.version
        )
        later(SECOND)
        assert await seen(gateway, agent="helper") == {"track", "refund"}

        await other.skills.assign("helper", "returns")
        await other.definitions.put("helper", instructions="Help.", tools=[], version=changed.version)
        later(SECOND)
        assert await seen(gateway, agent="helper") == {"track", "refund"}


@pytest.mark.req("MCP-07")
async def test_whoever_speaks_for_an_agent_that_is_switched_off_or_removed_reaches_nothing(
    gateway: Gateway, later: Callable[[float], None]
) -> None:
    await gateway.engine.tools.permit("track", {"default": "read"})
    definitions = gateway.engine.definitions
    made = await definitions.put("helper", instructions="Help.")
    helper = await caller(gateway, scopes=MEMBER, agent="helper")

    async def reaches_nothing() -> None:
        later(SECOND)
        assert (await gateway.tools(helper)).tools == ()
        for name, arguments in (("track", {"parcel": "P-1"}), ("recall", {"query": "tea"}), ("search_tools", {})):
            with pytest.raises(NotFound):
                await gateway.call(helper, name, arguments)
        for method, params in (("resources/read", {"uri": "shop://hours"}), ("prompts/get", {"name": "greet"})):
            with pytest.raises(Forbidden, match="there is no agent 'helper', or it is disabled"):
                await ask(gateway, helper, method, params)

    later(SECOND)
    assert {"track", "recall"} <= (await gateway.tools(helper)).by_name.keys()
    await definitions.put("helper", instructions="Help.", active=False, version=made.version)
    await reaches_nothing()
    await definitions.remove("helper")
    await reaches_nothing()


@pytest.mark.req("MCP-07")
async def test_what_is_denied_to_an_agent_is_gone_from_its_list_whatever_skill_grants_it(
    gateway: Gateway, later: Callable[[float], None]
) -> None:
    assert await seen(gateway, agent="support") == {"track", "refund"}

    await gateway.engine.tools.permit("refund", {"agents": {"support": "read"}})

    later(SECOND)
    assert await seen(gateway, agent="support") == {"track"}
    with pytest.raises(NotFound):
        await gateway.call(await caller(gateway, agent="support"), "refund", {"order": "A-1"})


@pytest.mark.req("MCP-07", "SAFE-03")
async def test_what_an_agent_may_not_do_by_itself_is_not_done_by_its_key(gateway: Gateway) -> None:
    person = Person(holdfast_approval={})
    clerk, order = await caller(gateway, scopes=MEMBER, agent="clerk"), {"order": "A-1"}

    for name, arguments in (("refund", order), ("call_tool", {"name": "refund", "arguments": order})):
        with pytest.raises(Forbidden, match="the caller acts for the agent 'clerk'"):
            await gateway.call(clerk, name, arguments, client=person)

    assert (await gateway.call(await caller(gateway), "refund", order)).text == "paid back 1 for A-1"
    assert (await gateway.call(await caller(gateway, agent="support"), "refund", order)).status == "done"


@pytest.mark.req("MCP-10")
async def test_a_call_asks_the_database_nothing_while_what_is_known_is_fresh_and_is_only_audited(
    quiet: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    for fresh in ((inventory, "FRESH"), (tenant_limits, "FRESH"), (tenant_limits, "STALE")):
        monkeypatch.setattr(*fresh, 60.0)
    limits = await quiet.engine.quotas.limits()
    for subject in ("tenant", "each user", "each agent", "tool track", "each user of each tool"):
        await limits.set(f"{subject}: 9000 requests per minute", by="boss")
    ann, support = await caller(quiet), await caller(quiet, agent="support")
    for who in (ann, support):
        await quiet.call(who, "track", {"parcel": "P-1"})
    counted = Counted(quiet.engine, monkeypatch)

    for who in (ann, support):
        assert (await quiet.call(who, "track", {"parcel": "P-1"})).status == "done"
        await quiet.tools(who)

    assert set(counted.sent) <= {add_to_audit("add")}


@pytest.mark.req("MCP-10")
async def test_many_who_ask_at_once_have_it_read_once(quiet: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = await caller(quiet, scopes=MEMBER)
    counted = Counted(quiet.engine, monkeypatch)

    await asyncio.gather(*(quiet.tools(ann) for _ in range(20)))

    assert len(counted.sent) == 3  # the revision, the tools, and the access rules


@pytest.mark.req("MCP-09")
async def test_what_plain_sql_writes_is_seen_when_all_is_read_anew(
    gateway: Gateway, later: Callable[[float], None]
) -> None:
    before = await seen(gateway)
    await gateway.engine.database.run(BY_SQL, 3)

    later(SECOND)
    assert await seen(gateway) == before
    later(READ_ANEW)
    async with asyncio.timeout(20):
        while await seen(gateway) != before | {"tool_1", "tool_2", "tool_3"}:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


@pytest.mark.req("MCP-10")
@pytest.mark.parametrize("error", [DatabaseAway("the database is away"), ValueError("a row that cannot be read")])
async def test_what_cannot_be_read_anew_is_tried_once_a_minute_and_what_is_known_stays(
    gateway: Gateway,
    later: Callable[[float], None],
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    known, tried = await seen(gateway), 0

    async def fails(**_: object) -> list[Any]:
        nonlocal tried
        tried += 1
        raise error

    monkeypatch.setattr(gateway.engine.tools, "list", fails)
    for waited in (READ_ANEW, SECOND, SECOND, READ_ANEW):
        later(waited)
        assert await seen(gateway) == known
        await settled()

    assert tried == 2
    assert len([line for line in caplog.messages if "could not reload the tools" in line]) == 2


@pytest.mark.req("RPC-04")
async def test_services_whose_dotted_names_are_the_same_go_by_their_names_in_the_registry(gateway: Gateway) -> None:
    for name, service in (("one", "a.b/c/d/1"), ("other", "a/b.c/d/1"), ("alone", "a/b/c/2"), ("odd", "a/b/ç/1")):
        await gateway.engine.tools.put(
            name, description="It.", parameters=NOTHING, kind="function", reference="shop:it", service=service
        )
    await gateway.inventory.current()

    tools = {each.name: each.tool.name for each in (await gateway.tools(await caller(gateway))).tools}

    assert {name: tools.get(name) for name in ("one", "other", "a.b.c.2", "odd")} == {
        "one": "one", "other": "other", "a.b.c.2": "alone", "odd": "odd",
    }  # fmt: skip
    assert "a.b.c.d.1" not in tools


@pytest.mark.req("MCP-09")
async def test_more_tools_than_a_page_are_all_known(gateway: Gateway) -> None:
    await gateway.engine.database.run(BY_SQL, 2500)

    tools = await seen(gateway)

    assert len(tools) == 2500 + 4


@pytest.mark.req("MCP-07")
async def test_a_function_whose_program_is_not_here_fails_and_says_where_it_would_be(gateway: Gateway) -> None:
    await gateway.engine.tools.put(
        "elsewhere", description="Elsewhere.", parameters=NOTHING, kind="function", reference="other:function"
    )
    await gateway.inventory.current()

    outcome = await gateway.call(await caller(gateway), "elsewhere", {})

    assert (outcome.status, outcome.code) == ("failed", "unavailable")
    assert "this process does not have the function other:function" in outcome.text


@pytest.mark.req("MCP-07")
async def test_tenants_see_nothing_of_one_another(gateways: Gateways, served: Engine) -> None:
    acme = gateways.of((await served.tenants.create("acme")).id)

    assert await seen(acme) == set()
    with pytest.raises(NotFound):
        await acme.call(await caller(acme), "track", {"parcel": "P-1"})


async def test_what_is_read_anew_ends_with_the_engine_and_says_nothing(
    config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(inventory, "READ_ANEW", -1.0)
    begun = asyncio.Event()
    async with open_engine(config=config) as engine:
        gateway = Gateway(engine, Inventory(engine, own_tools(engine)), Offerings(engine))
        await gateway.inventory.current()
        reading = engine.tools.list

        async def slowly(**options: Any) -> Any:
            begun.set()
            await asyncio.sleep(0.3)  # the engine closes meanwhile
            return await reading(**options)

        monkeypatch.setattr(engine.tools, "list", slowly)
        await gateway.inventory.current()
        async with asyncio.timeout(20):
            await begun.wait()
    left = [task for task in asyncio.all_tasks() if "gateway inventory" in task.get_name()]
    await asyncio.gather(*left)

    assert left == []
    assert [record.getMessage() for record in caplog.records if "closed" in record.getMessage()] == []
