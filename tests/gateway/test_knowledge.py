"""Documents for clients of MCP and JSON-RPC: tools that return JSON, and resources with updates."""

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

from holdfast.agents.definitions import Agent
from holdfast.engine import Engine
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.changes import ListChange, ListChanges, WantedChanges
from holdfast.mcp.protocol import NO_RESOURCE, McpError
from holdfast.memory import user
from tests.agents.stage import PATIENCE
from tests.gateway.shop import ask, caller
from tests.gateway.test_own import call, refused

pytestmark = pytest.mark.req("KNOW-03")

HANDBOOK = "# Travel\n\nManagers approve trips.\n\n# Hotels\n\nA night costs at most 150 euros."
LONG = "A line of a long text.\n" * 60_000


async def add(engine: Engine, text: str = HANDBOOK, name: str = "handbook.md", **more: Any) -> str:
    return str((await engine.knowledge.add(text=text, name=name, **more)).id)


async def test_documents_are_searched_read_and_listed_as_json(gateway: Gateway) -> None:
    ann = await caller(gateway)
    id = await add(gateway.engine, collection="hr")
    await add(gateway.engine, "Bob's trips.", "bob.md", owner=user("bob"))

    found = await call(gateway, ann, "search_knowledge", query="Who approves trips?")
    read = await call(gateway, ann, "read_document", document="handbook.md", section="hotels")
    listed = await call(gateway, ann, "list_documents", collection="hr")
    hidden = await refused(gateway, ann, "read_document", document="bob.md")

    [passage] = found["passages"]
    assert (passage["document"], passage["id"], passage["chunk"]) == ("handbook.md", id, 0)
    assert passage["citation"].startswith("handbook.md, characters ")
    assert "words alone" in found["note"]
    assert read["text"].strip() == "# Hotels\n\nA night costs at most 150 euros."
    assert read["document"]["uri"] == "knowledge://hr/handbook.md"
    assert [each["name"] for each in listed["documents"]] == ["handbook.md"]
    assert "there is no document 'bob.md'" in hidden.text


@pytest.mark.req("SAFE-02")
async def test_who_acts_for_an_agent_has_its_collections(gateway: Gateway) -> None:
    await gateway.engine.definitions.declare([Agent("clerk", knowledge=("hr",))])
    clerk, support = await caller(gateway, agent="clerk"), await caller(gateway, agent="support")
    await add(gateway.engine, collection="hr")
    await add(gateway.engine, "Trips of the board.", "board.md", collection="board")

    found = await call(gateway, clerk, "search_knowledge", query="trips")
    recalled = await call(gateway, clerk, "recall", query="trips")
    nothing = await call(gateway, support, "search_knowledge", query="trips")

    assert [each["document"] for each in found["passages"]] == ["handbook.md"]
    assert [each["citation"].partition(",")[0] for each in recalled["memories"]] == ["handbook.md"]
    assert nothing["passages"] == []
    assert (await call(gateway, support, "list_documents"))["documents"] == []


async def test_a_document_is_a_resource_at_its_address(gateway: Gateway) -> None:
    ann = await caller(gateway)
    name = "docs/a b/ä%2F&?.md"
    await add(gateway.engine, name=name, collection="my docs")
    await add(gateway.engine, LONG, "long.txt")
    uri = f"knowledge://my%20docs/{quote(name, safe='')}"

    listed = (await ask(gateway, ann, "resources/list"))["resources"]
    read = (await ask(gateway, ann, "resources/read", {"uri": uri}))["contents"]
    long = (await ask(gateway, ann, "resources/read", {"uri": "knowledge://default/long.txt"}))["contents"]
    templates = (await ask(gateway, ann, "resources/templates/list"))["resourceTemplates"]

    assert {each["uri"]: each.get("title") for each in listed}[uri] == "Travel"
    assert [(each["uri"], each["mimeType"]) for each in read] == [(uri, "text/markdown")]
    assert read[0]["text"].strip() == HANDBOOK
    assert "more characters: read_document with start=" in long[0]["text"]
    assert "knowledge://{collection}/{document}/pages/{page}" in [each["uriTemplate"] for each in templates]
    for missing in ("knowledge://default/none.md", f"knowledge://other/{quote(name, safe='')}", f"{uri}/pages/1"):
        with pytest.raises(McpError) as error:
            await ask(gateway, ann, "resources/read", {"uri": missing})
        assert error.value.code == NO_RESOURCE


async def test_many_documents_are_listed_in_pages(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.gateway.mcp.resources.PAGE", 2)
    monkeypatch.setattr("holdfast.gateway.mcp.resources.MOST_DOCUMENTS", 5)
    ann = await caller(gateway)
    for number in range(6):
        await add(gateway.engine, name=f"{number}.md")

    pages: list[list[str]] = []
    params: dict[str, Any] = {}
    while True:
        page = await ask(gateway, ann, "resources/list", params)
        pages.append([each["name"] for each in page["resources"] if each["uri"].startswith("knowledge:")])
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}

    assert [name for page in pages for name in page] == ["5.md", "4.md", "3.md", "2.md", "1.md"]


async def test_names_of_collections_and_documents_are_completed(gateway: Gateway) -> None:
    ann = await caller(gateway)
    await add(gateway.engine, collection="hr")
    ref = {"type": "ref/resource", "uri": "knowledge://{collection}/{document}"}

    async def complete(name: str, value: str, **known: str) -> list[str]:
        params = {"ref": ref, "argument": {"name": name, "value": value}, "context": {"arguments": known}}
        return (await ask(gateway, ann, "completion/complete", params))["completion"]["values"]

    assert await complete("collection", "h") == ["hr"]
    assert await complete("document", "hand", collection="hr") == ["handbook.md"]
    assert await complete("document", "x", collection="hr") == []


async def test_who_subscribes_to_a_document_learns_of_its_new_version_and_its_end(gateway: Gateway) -> None:
    ann = await caller(gateway)
    id = await add(gateway.engine)
    uri = "knowledge://default/handbook.md"
    wanted = WantedChanges(uris=frozenset({uri}))
    engine = gateway.engine

    async with ListChanges.of(gateway).watch(ann, wanted) as watch, asyncio.timeout(PATIENCE):
        await add(engine, "# New")
        new = await watch.next()
        found = await engine.knowledge.find("handbook.md")
        assert found is not None
        await engine.knowledge.update(found.id, title="Newer")
        changed = await watch.next()
        await engine.knowledge.remove(found.id)
        removed = await watch.next()

    assert str(found.id) == id
    assert new == changed == removed == [ListChange.of_resource(uri)]
