import json
from typing import Any

import pytest

from holdfast.access.principals import Principal
from holdfast.core.errors import Forbidden
from holdfast.gateway.gateway import Gateway
from holdfast.skills.registry_indexer import RegistryIndexer
from tests.gateway.shop import ADMIN, MEMBER, READER, Person, ask, caller

PROGRAM = ["picture", "refund", "ship", "track"]
MANY = """
insert into tool_t (host_id, name, description, implementation_type, permissions)
select $1, 'wheel_' || n, 'Rotates the carousel number ' || n || '.', 'function', '{"users": "execute"}'
from generate_series(1, 150) n
"""


async def found(gateway: Gateway, who: Principal, query: str, limit: int = 5) -> list[str]:
    """The names of the tools that a search finds."""
    outcome = await gateway.call(who, "search_tools", {"query": query, "limit": limit})
    assert outcome.status == "done", outcome.text
    return [each["name"] for each in outcome.result["tools"]]


async def listed(gateway: Gateway, who: Principal) -> bytes:
    """The tools that somebody is told of, as they are written."""
    return bytes((await ask(gateway, who, "tools/list"))["tools"])


def names(written: bytes) -> list[str]:
    """The names of listed tools."""
    tools: list[dict[str, Any]] = json.loads(written)
    return [each["name"] for each in tools]


@pytest.mark.req("MCP-09")
async def test_tools_are_found_with_all_that_it_takes_to_call_them(gateway: Gateway) -> None:
    ann = await caller(gateway)

    outcome = await gateway.call(ann, "search_tools", {"query": "where is my parcel", "limit": 1})

    [tool] = outcome.result["tools"]
    assert (tool["name"], tool["description"]) == ("track", "Where a parcel is.")
    assert tool["inputSchema"]["properties"]["parcel"] == {"type": "string"}
    assert "words alone" in outcome.result["note"]
    called = await gateway.call(ann, "call_tool", {"name": tool["name"], "arguments": {"parcel": "P-1"}})
    assert called.result == {"parcel": "P-1", "where": "Cologne"}


@pytest.mark.req("MCP-09", "MCP-07")
async def test_a_search_finds_nothing_that_its_caller_does_not_see(gateway: Gateway) -> None:
    await gateway.engine.tools.permit("track", {"users": "read"})
    await gateway.inventory.current()

    assert await found(gateway, await caller(gateway), "give money back to the buyer", 1) == ["refund"]
    assert await found(gateway, await caller(gateway, scopes=MEMBER), "give money back to the buyer") == []
    assert await found(gateway, await caller(gateway, scopes=MEMBER), "where a parcel is") == ["track"]
    assert await found(gateway, await caller(gateway, scopes=MEMBER, agent="clerk"), "money back", 1) == ["refund"]
    assert await found(gateway, await caller(gateway, scopes=READER, agent="clerk"), "money back") == []


@pytest.mark.req("MCP-09", "MCP-07")
async def test_what_is_called_by_another_tool_is_held_to_its_own_rules(gateway: Gateway) -> None:
    ann, reader = await caller(gateway), await caller(gateway, scopes=READER, agent="support")
    await gateway.engine.tools.permit("refund", {"agents": {"support": "none"}})
    await gateway.inventory.current()

    wrong = await gateway.call(ann, "call_tool", {"name": "refund", "arguments": {"amount": "much"}})
    unseen = await gateway.call(reader, "call_tool", {"name": "refund", "arguments": {"order": "A-1"}})
    absent = await gateway.call(reader, "call_tool", {"name": "nothing", "arguments": {"order": "A-1"}})
    await gateway.engine.tools.put(
        "close", description="Close.", parameters={}, kind="function", reference="shop:close", approve=True
    )
    await gateway.inventory.current()
    with pytest.raises(Forbidden, match="a person has to allow each call of close"):
        await gateway.call(ann, "call_tool", {"name": "close"})
    itself = await gateway.call(ann, "call_tool", {"name": "call_tool", "arguments": {"name": "track"}})
    unsaid = await gateway.call(ann, "call_tool", {"arguments": {}})

    assert (wrong.code, wrong.text.startswith("refund was not called")) == ("invalid_input", True)
    assert (unseen.code, unseen.text) == ("not_found", absent.text.replace("nothing", "refund"))
    assert itself.code == "not_found"
    assert unsaid.text.startswith("call_tool was not called")


@pytest.mark.req("MCP-09")
async def test_a_tool_that_is_called_by_another_reaches_its_client(gateway: Gateway) -> None:
    client = Person(where={"city": "Bern"})

    outcome = await gateway.call(
        await caller(gateway), "call_tool", {"name": "ship", "arguments": {"order": "A-1"}}, client=client
    )

    assert outcome.text == "A-1 goes to Bern"
    assert client.heard == ["looking it up"]


@pytest.mark.req("MCP-09")
async def test_where_tools_are_many_a_client_is_told_of_the_engines_own_and_finds_the_others(gateway: Gateway) -> None:
    await gateway.engine.database.run(MANY)
    await RegistryIndexer(gateway.engine.postgres, gateway.engine.embeddings).catch_up()
    ann = await caller(gateway, scopes=MEMBER)

    told = names(await listed(gateway, ann))

    assert told[:2] == ["search_tools", "call_tool"]
    assert not any(name.startswith("wheel_") for name in told)
    assert await found(gateway, ann, "rotates the carousel number 77", 1) == ["wheel_77"]


@pytest.mark.req("MCP-09")
async def test_a_list_depends_on_rights_and_registry_alone(gateway: Gateway) -> None:
    ann, bob = await caller(gateway, scopes=ADMIN), await caller(gateway, "bob", scopes=ADMIN)
    before = await listed(gateway, ann)

    await gateway.call(ann, "search_tools", {"query": "parcel"})
    await gateway.call(ann, "call_tool", {"name": "track", "arguments": {"parcel": "P-1"}})
    await gateway.call(ann, "remember", {"content": "Ann drinks tea."})

    assert await listed(gateway, ann) == before
    assert await listed(gateway, bob) == before
    assert [name for name in names(before) if name in PROGRAM] == PROGRAM
