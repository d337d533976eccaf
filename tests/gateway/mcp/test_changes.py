"""What changes reaches those who listen, whoever changed it, and nobody else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from holdfast import App
from holdfast.access.principals import OWNER_SCOPES, USER_SCOPES, Principal
from holdfast.core.config import Config
from holdfast.engine import Engine, open_engine
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.changes import LISTS, ListChange, ListChanges, WantedChanges
from holdfast.gateway.mcp.methods import METHODS
from holdfast.gateway.mcp.requests import McpRequest, Result

TOOLS = ListChange.of_list("tools")
PROMPTS = ListChange.of_list("prompts")
ORDER = "shop://orders/7"
PROMISED = 10  # seconds: two, where the machine has nothing else to do


@pytest.fixture
async def elsewhere(config: Config, gateway: Gateway) -> AsyncIterator[Engine]:
    """The same tenant in another process, as far as anybody can tell."""
    async with open_engine(config=config) as engine:
        yield engine.tenant(await gateway.engine.database.tenant())


@pytest.fixture
async def ann(gateway: Gateway) -> Principal:
    """Who administers the tenant, and sees every tool."""
    return Principal(await gateway.engine.database.tenant(), "ann", OWNER_SCOPES)


async def add_tool(engine: Engine, name: str) -> None:
    """Register a tool that only who administers the tenant sees."""
    await engine.tools.put(name, description="New.", parameters={}, kind="function", reference="shop:new")


@pytest.mark.req("MCP-01", "MCP-08")
async def test_a_listener_hears_what_another_node_changes_within_two_seconds(
    gateway: Gateway, ann: Principal, elsewhere: Engine
) -> None:
    wanted = WantedChanges(frozenset({"tools", "prompts"}), frozenset({ORDER}))
    heard: list[ListChange] = []
    async with ListChanges.of(gateway).watch(ann, wanted) as watch:
        async with asyncio.timeout(PROMISED):
            await add_tool(elsewhere, "newcomer")
            while TOOLS not in heard:
                heard += await watch.next()
        async with asyncio.timeout(PROMISED):
            elsewhere.updated("shop://orders/8")
            elsewhere.updated(ORDER)
            while ListChange.of_resource(ORDER) not in heard:
                heard += await watch.next()

    assert heard.count(TOOLS) == 1
    assert PROMPTS not in heard
    assert ListChange.of_resource("shop://orders/8") not in heard


@pytest.mark.req("MCP-01")
async def test_whoever_does_not_see_what_changed_hears_nothing(gateway: Gateway, ann: Principal) -> None:
    member = Principal(ann.tenant, "bob", USER_SCOPES)
    changes, wanted = ListChanges.of(gateway), WantedChanges(frozenset({"tools"}))

    async with changes.watch(ann, wanted) as seen, changes.watch(member, wanted) as unseen:
        waiting = asyncio.ensure_future(unseen.next())
        async with asyncio.timeout(20):
            for name in ("newcomer", "latecomer"):  # with the second, the first was looked at for both
                await add_tool(gateway.engine, name)
                assert await seen.next() == [TOOLS]

        assert not waiting.done()
        waiting.cancel()


@pytest.mark.req("MCP-01", "MCP-07")
async def test_a_caller_from_whom_an_access_rule_hides_a_tool_hears_of_it_and_no_other(
    gateway: Gateway, ann: Principal, elsewhere: Engine
) -> None:
    carl = Principal(ann.tenant, "carl", OWNER_SCOPES)
    changes, wanted = ListChanges.of(gateway), WantedChanges(frozenset({"tools"}))

    async with changes.watch(ann, wanted) as seen, changes.watch(carl, wanted) as unseen:
        waiting = asyncio.ensure_future(unseen.next())
        async with asyncio.timeout(20):
            for tool in ("refund", "track"):  # with the second, the first was looked at for both
                await elsewhere.rules.put(f'hide: deny user "ann" tool "{tool}"')
                assert await seen.next() == [TOOLS]

        assert not waiting.done()
        waiting.cancel()


@pytest.mark.req("MCP-01")
async def test_a_list_that_the_program_changes_is_heard_of(gateway: Gateway, app: App, ann: Principal) -> None:
    async with ListChanges.of(gateway).watch(ann, WantedChanges(frozenset({"prompts", "resources"}))) as watch:

        @app.prompt
        def apologise(order: str) -> str:
            """Say sorry."""
            return f"We are sorry about {order}."

        async with asyncio.timeout(20):
            assert await watch.next() == [PROMPTS]


@pytest.mark.req("MCP-01")
async def test_what_changes_often_is_told_once_and_what_is_wanted_may_change(gateway: Gateway, ann: Principal) -> None:
    async with ListChanges.of(gateway).watch(ann, WantedChanges(uris=frozenset({ORDER, "shop://hours"}))) as watch:
        async with asyncio.timeout(20):
            for uri in (ORDER, "shop://hours", ORDER):
                gateway.engine.updated(uri)
            once = await watch.next()
            watch.wanted = WantedChanges(uris=frozenset({ORDER}))
            for uri in ("shop://hours", ORDER):
                gateway.engine.updated(uri)
            narrowed = await watch.next()
            watch.wanted = WantedChanges(uris=frozenset({ORDER, "shop://new"}))
            gateway.engine.updated("shop://new")  # before it was looked at for the first time
            widened = await watch.next()

    assert sorted(change.params["uri"] for change in once) == ["shop://hours", ORDER]
    assert narrowed == [ListChange.of_resource(ORDER)]
    assert widened == [ListChange.of_resource("shop://new")]


@pytest.mark.req("MCP-01")
async def test_a_list_that_cannot_be_seen_keeps_no_other_listener_from_hearing(
    gateway: Gateway, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    lame = Principal(ann.tenant, "lame", OWNER_SCOPES)
    list_tools, broken = METHODS["tools/list"], asyncio.Event()

    async def listing(request: McpRequest) -> Result:
        if request.caller == lame and broken.is_set():
            raise KeyError("no such list")
        return await list_tools(request)

    monkeypatch.setitem(METHODS, "tools/list", listing)
    wanted, changes = WantedChanges(frozenset({"tools"})), ListChanges.of(gateway)
    async with AsyncExitStack() as stack:
        seeing = [await stack.enter_async_context(changes.watch(ann, wanted)) for _ in range(5)]
        waiting = await stack.enter_async_context(changes.watch(lame, wanted))
        broken.set()
        await add_tool(gateway.engine, "newcomer")
        async with asyncio.timeout(20):
            heard = [await watch.next() for watch in seeing]
            broken.clear()
            later = await waiting.next()  # it is looked at again, though nothing else has changed

    assert heard == [[TOOLS]] * 5
    assert later == [TOOLS]


@pytest.mark.req("MCP-07")
async def test_whoever_may_not_read_hears_of_tools_alone(gateway: Gateway, ann: Principal) -> None:
    writer = Principal(ann.tenant, "writer", frozenset({"write"}))

    async with ListChanges.of(gateway).watch(writer, WantedChanges(frozenset(LISTS), frozenset({ORDER}))) as watch:
        first = watch.wanted
        watch.wanted = WantedChanges(uris=frozenset({ORDER}))

        assert (first, watch.wanted) == (WantedChanges(frozenset({"tools"})), WantedChanges())


@pytest.mark.req("MCP-01")
async def test_nothing_is_looked_at_while_nobody_listens(gateway: Gateway, ann: Principal) -> None:
    changes = ListChanges.of(gateway)

    async with changes.watch(ann, WantedChanges(frozenset({"tools"}))), changes.watch(ann, WantedChanges()):
        during = _followers()
    after = _followers()

    assert (during, after) == (1, 0)


def _followers() -> int:
    return sum(task.get_name() == "gateway changes" for task in asyncio.all_tasks())
