import asyncio
import base64
from typing import Any

import pytest

from holdfast import App, Run
from holdfast.core.config import Config
from holdfast.core.errors import AlreadyExists, DatabaseAway, Forbidden, InvalidInput, TimedOut, TooLarge
from holdfast.core.ids import TenantId
from holdfast.engine import Engine, open_engine
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.gateways import Gateways
from holdfast.gateway.mcp.changes import ListChange, ListChanges, WantedChanges
from holdfast.gateway.mcp.methods import METHODS
from holdfast.mcp.protocol import INVALID_PARAMS, NO_RESOURCE, McpError
from holdfast.skills.client import InputRequired
from holdfast.skills.resource_updates import ResourceUpdates
from tests.agents.stage import PATIENCE, changed
from tests.gateway.shop import MEMBER, PIXEL, Person, ask, caller

SKILLS = """
insert into skill_t (host_id, name, description, content_markdown)
select $1, 'skill-' || lpad(n::text, 3, '0'), '', 'Do it.' from generate_series(0, 149) n
"""


async def read(gateway: Gateway, uri: str, **who: Any) -> list[dict[str, Any]]:
    """What a resource holds."""
    return (await ask(gateway, await caller(gateway, **who), "resources/read", {"uri": uri}))["contents"]


@pytest.mark.req("MCP-01")
async def test_resources_and_templates_are_listed_as_they_are_declared(gateway: Gateway) -> None:
    ann = await caller(gateway)

    listed = (await ask(gateway, ann, "resources/list"))["resources"]
    templates = (await ask(gateway, ann, "resources/templates/list"))["resourceTemplates"]

    assert listed == [
        {
            "uri": "shop://hours",
            "name": "hours",
            "title": "Opening hours",
            "description": "When the shop is open.",
            "mimeType": "text/markdown",
        },
        {"uri": "shop://logo", "name": "logo", "description": "The logo."},
        {
            "uri": "holdfast://skills/returns",
            "name": "returns",
            "mimeType": "text/markdown",
            "description": "Sending goods back.",
        },
    ]
    assert [each["uriTemplate"] for each in templates] == [
        "shop://orders/{order}",
        "shop://bills/{year}/{number}",
        "holdfast://skills/{name}",
        "holdfast://notes/{agent}",
        "holdfast://conversations/{session_id}",
        "knowledge://{collection}/{document}",
        "knowledge://{collection}/{document}/pages/{page}",
    ]


@pytest.mark.req("MCP-07", "SAFE-03")
@pytest.mark.parametrize("scopes", [frozenset({"write"}), frozenset[str]()])
async def test_whoever_may_not_read_reads_nothing(gateway: Gateway, scopes: frozenset[str]) -> None:
    ann = await caller(gateway, scopes=scopes)

    for method in METHODS:
        if not method.startswith("tools/"):
            with pytest.raises(Forbidden) as refused:
                await ask(gateway, ann, method, {"uri": "shop://hours", "name": "greet"})
            assert refused.value.details == {"scope": "read"}


@pytest.mark.req("MCP-01")
async def test_a_program_is_offered_to_all_who_ask_at_once_and_after_a_failure(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenants, offerings = gateway.engine.tenants, gateway.offerings
    find = tenants.id_of

    async def away(name: str) -> TenantId:
        raise DatabaseAway("the database is away")

    monkeypatch.setattr(tenants, "id_of", away)
    with pytest.raises(DatabaseAway):
        await offerings.prompts()
    monkeypatch.setattr(tenants, "id_of", find)

    found = await asyncio.gather(*(offerings.prompts() for _ in range(3)))

    assert [sorted(each) for each in found] == [["complain", "greet"]] * 3


@pytest.mark.req("MCP-01")
async def test_a_resource_is_a_text_or_bytes_or_several_parts(gateway: Gateway) -> None:
    hours = await read(gateway, "shop://hours")
    logo = await read(gateway, "shop://logo")
    bill = await read(gateway, "shop://bills/2025/a%2Fb")

    assert hours == [{"uri": "shop://hours", "mimeType": "text/markdown", "text": "# Monday to Friday"}]
    blob = base64.b64encode(PIXEL).decode()
    assert logo == [{"uri": "shop://logo", "mimeType": "application/octet-stream", "blob": blob}]
    assert [each["text"] for each in bill] == ["2026 a/b", "2026 a/b"]


@pytest.mark.req("MCP-01")
async def test_an_address_is_decoded_once_and_leads_nobody_astray(gateway: Gateway) -> None:
    [twice] = await read(gateway, "shop://orders/%252e%252e")
    [plain] = await read(gateway, "shop://orders/A%20%C3%BC", user="bob")

    assert (twice["text"], plain["text"]) == ("%2e%2e of ann", "A ü of bob")
    for uri in ("shop://orders/..", "shop://orders/%2e%2e%2Fetc", "shop://orders/%2Fetc", "shop://orders/a%00"):
        with pytest.raises(McpError):
            await read(gateway, uri)


@pytest.mark.req("MCP-01")
async def test_what_there_is_not_is_told_with_its_address(gateway: Gateway) -> None:
    for uri in (
        "shop://nothing",
        "shop://orders/none",
        "SHOP://hours",
        "shop://orders/a/b",
        "holdfast://notes",
        "holdfast://skills/nothing",
        "shop://orders/\ud800",
        "",
    ):
        with pytest.raises(McpError) as refused:
            await read(gateway, uri)
        assert refused.value.code == NO_RESOURCE
        assert refused.value.data == {"uri": uri}


@pytest.mark.req("MCP-01")
async def test_what_does_not_fit_the_functions_types_is_told(gateway: Gateway) -> None:
    with pytest.raises(InvalidInput, match="`year` is invalid"):
        await read(gateway, "shop://bills/never/1")


@pytest.mark.req("MCP-01")
async def test_notes_skills_and_conversations_are_read_by_whom_they_belong_to(gateway: Gateway) -> None:
    engine = gateway.engine
    await engine.notes.edit(user="ann", agent="support", operation="append", content="Likes tea.")
    talk = await engine.conversations.create(user="ann", agent="away", session_id="s-1")  # nobody answers
    await engine.conversations.append(talk.id, "Hello.", context="text:user:ann")

    [notes] = await read(gateway, "holdfast://notes/support")
    [skill] = await read(gateway, "holdfast://skills/returns", agent="support", scopes=MEMBER)
    [spoken] = await read(gateway, "holdfast://conversations/s-1")

    assert (notes["text"], skill["text"], spoken["text"]) == ("Likes tea.", "Ask why first.", "**ann**: Hello.")
    assert (await read(gateway, "holdfast://notes/support", user="bob"))[0]["text"] == ""
    for uri, who in (
        ("holdfast://conversations/s-1", {"user": "bob"}),
        ("holdfast://conversations/s-1", {"agent": "clerk"}),
        ("holdfast://skills/returns", {"agent": "clerk"}),
        ("holdfast://skills/returns", {"scopes": MEMBER}),
        ("holdfast://notes/support", {"agent": "clerk"}),
    ):
        with pytest.raises(McpError):
            await read(gateway, uri, **who)


@pytest.mark.req("MCP-01")
async def test_skills_are_listed_page_by_page_to_whom_may_read_them(gateway: Gateway) -> None:
    await gateway.engine.database.run(SKILLS)
    ann = await caller(gateway)

    first = await ask(gateway, ann, "resources/list")
    second = await ask(gateway, ann, "resources/list", {"cursor": first["nextCursor"]})
    plain = await ask(gateway, await caller(gateway, scopes=MEMBER), "resources/list")

    names = [each["name"] for page in (first, second) for each in page["resources"]]
    assert names == ["hours", "logo", "returns", *(f"skill-{n:03}" for n in range(150))]
    assert "nextCursor" not in second
    assert [each["name"] for each in plain["resources"]] == ["hours", "logo"]
    with pytest.raises(McpError) as refused:
        await ask(gateway, ann, "resources/list", {"cursor": "!"})
    assert refused.value.code == INVALID_PARAMS


@pytest.mark.req("MCP-01")
async def test_a_programs_resources_are_offered_to_the_tenants_it_is_served_for(
    gateways: Gateways, served: Engine
) -> None:
    acme = gateways.of((await served.tenants.create("acme")).id)
    ann = await caller(acme)

    assert (await ask(acme, ann, "resources/list"))["resources"] == []
    assert (await ask(acme, ann, "prompts/list"))["prompts"] == []
    with pytest.raises(McpError):
        await read(acme, "shop://hours")


@pytest.mark.req("MCP-01")
async def test_what_a_function_breaks_by_waits_for_or_takes_too_much_of_is_raised(
    gateway: Gateway, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.resource("shop://asks")
    async def asks(run: Run) -> str:
        reply = await run.client.elicit("sure", "Sure?", {"type": "object", "properties": {}})
        return str(reply.content["word"])

    @app.resource("shop://slow")
    async def slow() -> str:
        await asyncio.Event().wait()
        return ""

    @app.resource("shop://large")
    async def large() -> str:
        return "x" * 1_000_001

    ann = await caller(gateway)
    monkeypatch.setattr(gateway.engine, "config", changed(gateway.engine.config, {"gateway_timeout": 0.1}))

    with pytest.raises(KeyError):
        await read(gateway, "shop://orders/broken")
    with pytest.raises(InputRequired):
        await ask(gateway, ann, "resources/read", {"uri": "shop://asks"}, client=Person())
    answered = await ask(gateway, ann, "resources/read", {"uri": "shop://asks"}, client=Person(sure={"word": "yes"}))
    assert answered["contents"][0]["text"] == "yes"
    with pytest.raises(TimedOut):
        await read(gateway, "shop://slow")
    with pytest.raises(TooLarge):
        await read(gateway, "shop://large")


@pytest.mark.req("MCP-01")
def test_what_cannot_be_a_resource_is_refused_when_it_is_declared() -> None:
    app = App()

    def of_order(order: str) -> str:
        """An order."""
        return order

    for uri in ("orders/{order}", "shop://{order}{other}", "shop://orders", "shop://{order}/{more}", "shop://{a b}"):
        with pytest.raises(InvalidInput):
            app.resource(uri)(of_order)
    with pytest.raises(InvalidInput, match="a completer for 'other' but no such argument"):
        app.resource("shop://{order}", complete={"other": []})(of_order)
    with pytest.raises(AlreadyExists):
        app.resource("holdfast://mine/{order}")(of_order)
    app.resource("shop://{order}")(of_order)
    with pytest.raises(AlreadyExists):
        app.resource("shop://{order}")(of_order)


@pytest.mark.req("MCP-01", "MCP-08")
async def test_that_a_resource_was_updated_is_heard_on_every_node_once(
    gateway: Gateway, app: App, config: Config
) -> None:
    ann, uris = await caller(gateway), frozenset({"shop://orders/A-1", "shop://hours", "shop://other"})
    async with open_engine(config=config) as other, asyncio.timeout(PATIENCE):
        changes = ListChanges.of(Gateways(other).of(ann.tenant))
        async with changes.watch(ann, WantedChanges(uris=uris)) as watch:
            await asyncio.to_thread(app.updated, "shop://orders/A-1")
            assert await watch.next() == [ListChange.of_resource("shop://orders/A-1")]
            app.updated("shop://hours")
            assert await watch.next() == [ListChange.of_resource("shop://hours")]
    with pytest.raises(InvalidInput):
        app.updated("shop://" + "x" * 3000)


@pytest.mark.req("MCP-08")
async def test_an_update_that_two_engines_of_a_tenant_announce_counts_once(engine: Engine) -> None:
    updates = ResourceUpdates(engine.postgres.system)

    updates.send(engine.database, "shop://hours")
    updates.send(engine.tenant("default").database, "shop://hours")
    await asyncio.sleep(0)  # both are noted before the first is counted
    await updates.close()

    counted = await engine.database.all("select version from resource_update where tenant_id = $1")
    assert [row["version"] for row in counted] == [1]
