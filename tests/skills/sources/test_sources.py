import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from holdfast.core.errors import AlreadyExists, Conflict, Forbidden, HoldfastError, InvalidInput, NotFound, TooLarge
from holdfast.core.processes import ProcessCalls
from holdfast.engine import Engine
from holdfast.execution.documents import Documents
from holdfast.execution.egress import AllowedHosts, Egress
from holdfast.execution.secrets import Secrets
from holdfast.skills.history import ChangeHistory
from holdfast.skills.request import Backend
from holdfast.skills.skills import Skills
from holdfast.skills.sources.source import MAX_OPERATIONS, Choice, SourceKind
from holdfast.skills.sources.sources import LARGE_DOCUMENT_BYTES, MAX_DOCUMENT_BYTES, Fetch, Sources
from holdfast.skills.tools import Tools
from tests.execution.backend import Service

pytestmark = pytest.mark.req("MCP-03")

EVERYTHING = Choice(everything=True)
SERVER = "https://shop.example.com/v1"


def operation(**said: Any) -> dict[str, Any]:
    return {"responses": {"200": {"description": "so"}}, **said}


def document(paths: dict[str, Any], **said: Any) -> bytes:
    info = {"title": "Shop", "version": "1.2"}
    return json.dumps({"openapi": "3.1.0", "info": info, "servers": [{"url": SERVER}], "paths": paths, **said}).encode()


def parameter(name: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": "string", **schema}}


ORDERS = {
    "/orders": {
        "get": operation(summary="List orders", tags=["orders"], parameters=[parameter("state")]),
        "post": operation(summary="Place an order", operationId="placeOrder"),
    },
    "/orders/{id}": {"get": operation(summary="One order", **{"x-ai-enabled": True})},
}


def fetching(documents: Documents) -> Fetch:
    """Fetch documents of any kind as files."""

    async def fetch(kind: SourceKind | None, location: str, backend: Backend, limit: int, by: str = "") -> bytes:
        return await documents.fetch(location, limit)

    return fetch


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """A service with documents; it is on this machine."""
    async with Service().serving() as service:
        yield service


@pytest.fixture
async def egress(service: Service) -> AsyncIterator[Egress]:
    """The way out, to that service too."""
    async with Egress(AllowedHosts.parse([f"127.0.0.1:{service.port}"])) as egress:
        yield egress


@pytest.fixture
def sources(words_only: Engine, tools: Tools, egress: Egress) -> Sources:
    """The sources of the tenant `default`."""
    return Sources(words_only.database, tools, fetching(Documents(egress)), ProcessCalls())


async def test_what_a_document_marks_becomes_tools_and_what_it_does_not_is_told(sources: Sources, tools: Tools) -> None:
    report = await sources.add("shop", document=document(ORDERS), by="ann")

    found = await tools.list(source="shop")
    told = await sources.get("shop")
    assert report.added == ("get_orders_by_id",)
    assert [(entry.tool.name, entry.operation) for entry in found] == [("get_orders_by_id", "GET /orders/{id}")]
    assert found[0].tool.request is not None
    assert found[0].tool.request.url == f"{SERVER}/orders/{{id}}"
    assert [each.operation for each in report.skipped] == ["GET /orders", "POST /orders"]
    assert (told.source.title, told.source.label, told.source.tools, told.source.skipped) == ("Shop", "1.2", 1, 2)
    assert (told.skipped, told.tools[0].operation) == (report.skipped, "GET /orders/{id}")
    assert (told.source.updated_by, await sources.list()) == ("ann", (told.source,))


async def test_what_is_chosen_becomes_tools_too(sources: Sources) -> None:
    choice = Choice(operations=("placeOrder", "no-such"), tags=("orders",))

    report = await sources.add("shop", document=document(ORDERS), choice=choice)

    assert report.added == ("get_orders", "get_orders_by_id", "post_orders")
    assert [(each.operation, each.chosen) for each in report.skipped] == [("no-such", True)]
    assert report.source.choice == choice


async def test_a_reload_tells_what_was_added_changed_and_removed(sources: Sources, tools: Tools) -> None:
    await sources.add("shop", document=document(ORDERS), choice=EVERYTHING, pin="follow")
    known = (await tools.get("get_orders")).id
    changed = {
        "/orders": {
            "get": operation(summary="All orders", parameters=[parameter("state", enum=["new"]), parameter("q")])
        },
        "/orders/{id}": ORDERS["/orders/{id}"],
        "/customers": {"get": operation()},
    }

    report = await sources.reload("shop", document=document(changed), by="bob")

    assert (report.added, report.removed, report.unchanged) == (
        ("get_customers",),
        ("post_orders",),
        ("get_orders_by_id",),
    )
    assert [(each.name, each.what) for each in report.changed] == [
        ("get_orders", ("description", "parameters (q, state)"))
    ]
    assert report.written
    assert (await tools.get("get_orders")).id == known
    assert [entry.tool.name for entry in await tools.list(source="shop")] == [
        "get_customers",
        "get_orders",
        "get_orders_by_id",
    ]


async def test_a_reload_of_the_same_writes_nothing(sources: Sources, history: ChangeHistory) -> None:
    await sources.add("shop", document=document(ORDERS), choice=EVERYTHING)
    before = await sources.get("shop")

    report = await sources.reload("shop", document=document(ORDERS), by="bob")

    assert (report.written, len(report.unchanged)) == (False, 3)
    assert (report.added, report.changed, report.removed) == ((), (), ())
    after = await sources.get("shop")
    assert replace(after, source=replace(after.source, checked_at=before.source.checked_at)) == before
    assert len(await history.of(kind="source", name="shop", limit=10)) == 1


async def test_a_rehearsal_tells_what_would_change_and_changes_nothing(sources: Sources, tools: Tools) -> None:
    await sources.add("shop", document=document(ORDERS), choice=EVERYTHING)
    before = await sources.get("shop")

    report = await sources.reload("shop", document=document({}), dry_run=True)

    assert (report.removed, report.dry_run, report.written) == (
        ("get_orders", "get_orders_by_id", "post_orders"),
        True,
        False,
    )
    after = await sources.get("shop")
    assert replace(after, source=replace(after.source, checked_at=before.source.checked_at)) == before
    assert len(await tools.list(source="shop")) == 3


async def test_a_tool_that_a_skill_works_with_is_deactivated_and_comes_back(
    sources: Sources, tools: Tools, skills: Skills
) -> None:
    await sources.add("shop", document=document(ORDERS), choice=EVERYTHING)
    await skills.put("ordering", instructions="Order.")
    await skills.link("ordering", "post_orders")

    gone = await sources.reload("shop", document=document({"/orders": {"get": ORDERS["/orders"]["get"]}}))
    told = await sources.get("shop")
    back = await sources.reload("shop", document=document(ORDERS))

    assert (gone.deactivated, gone.removed) == (("post_orders",), ("get_orders_by_id",))
    assert [(tool.name, tool.active, tool.gone) for tool in told.tools] == [
        ("get_orders", True, False),
        ("post_orders", False, True),
    ]
    assert told.source.tools == 1
    assert [each.name for each in back.changed] == ["post_orders"]
    assert (await tools.get("post_orders")).active


async def test_a_source_is_removed_with_its_tools_unless_skills_work_with_one(
    sources: Sources, tools: Tools, skills: Skills, history: ChangeHistory
) -> None:
    await sources.add("shop", document=document(ORDERS), choice=EVERYTHING)
    await skills.put("ordering", instructions="Order.")
    await skills.link("ordering", "post_orders")

    with pytest.raises(AlreadyExists, match=r"post_orders \(ordering\)") as refused:
        await sources.remove("shop")
    removed = await sources.remove("shop", force=True, by="ann")

    assert refused.value.details["tools"] == ["post_orders (ordering)"]
    assert removed == ("get_orders", "get_orders_by_id", "post_orders")
    assert await tools.list() == []
    assert await skills.tools_of("ordering") == []
    with pytest.raises(NotFound):
        await sources.get("shop")
    changes = await history.of(kind="source", name="shop", limit=10)
    assert [change.operation for change in changes] == ["removed", "created"]


async def test_two_sources_with_the_same_names_keep_theirs_apart(sources: Sources) -> None:
    first = await sources.add("shop", document=document(ORDERS), choice=EVERYTHING)

    second = await sources.add("depot", document=document(ORDERS), choice=EVERYTHING)
    again = await sources.reload("depot", document=document(ORDERS))

    assert first.added == ("get_orders", "get_orders_by_id", "post_orders")
    assert second.added == ("depot_get_orders", "depot_get_orders_by_id", "depot_post_orders")
    assert again.unchanged == second.added


async def test_a_document_is_fetched_and_fetched_again(sources: Sources, service: Service) -> None:
    url = f"{service.url}/api/openapi.json"
    relative = document(ORDERS, servers=[{"url": "/v2"}])
    service.will_answer("/api/openapi.json", body=relative)

    report = await sources.add("shop", url=url, choice=EVERYTHING)
    service.will_answer("/api/openapi.json", body=document({}))
    again = await sources.reload("shop")

    told = report.source
    assert (told.location, len(report.added)) == (url, 3)
    assert again.removed == report.added


async def test_a_relative_server_is_below_where_the_document_is(
    sources: Sources, tools: Tools, service: Service
) -> None:
    service.will_answer("/docs/api.json", body=document(ORDERS, servers=[{"url": "../v2"}]))

    await sources.add("shop", url=f"{service.url}/docs/api.json")

    request = (await tools.get("get_orders_by_id")).tool.request
    assert request is not None
    assert request.url == f"{service.url}/v2/orders/{{id}}"


@pytest.mark.req("EXEC-04")
async def test_a_document_is_not_fetched_from_a_private_address_nor_by_a_redirect_to_one(
    words_only: Engine, tools: Tools, service: Service
) -> None:
    service.will_answer("/moved", status=302, headers={"Location": f"http://[::1]:{service.port}/api.json"})
    service.will_answer("/api.json", body=document(ORDERS))
    refused: list[HoldfastError] = []

    async with Egress() as closed, Egress(AllowedHosts.parse([f"127.0.0.1:{service.port}"])) as half_open:
        for egress, path in ((closed, "/api.json"), (half_open, "/moved")):
            sources = Sources(words_only.database, tools, fetching(Documents(egress)), ProcessCalls())
            with pytest.raises(Forbidden) as told:
                await sources.add("shop", url=service.url + path)
            refused.append(told.value)

    assert all("not public" in error.why for error in refused)
    assert [asked.path for asked in service.asked] == ["/moved"]


@pytest.mark.parametrize(
    ("status", "error"), [(404, NotFound), (403, InvalidInput), (500, HoldfastError)], ids=["gone", "refused", "broken"]
)
async def test_an_address_without_a_document_says_what_it_answers(
    sources: Sources, service: Service, status: int, error: type[HoldfastError]
) -> None:
    service.will_answer("/api.json", status=status, text="no")

    with pytest.raises(error, match=f"the server returned {status}"):
        await sources.add("shop", url=f"{service.url}/api.json")

    assert await sources.list() == ()


async def test_a_document_that_never_ends_is_left_unread(
    words_only: Engine, tools: Tools, egress: Egress, service: Service
) -> None:
    documents = Documents(egress)
    service.will_answer("/api.json", body=b" " * 1000)

    with pytest.raises(TooLarge, match="more than 999 bytes"):
        await documents.fetch(f"{service.url}/api.json", 999)
    sources = Sources(words_only.database, tools, fetching(documents), ProcessCalls())
    with pytest.raises(TooLarge):
        await sources.add("shop", document=b" " * (MAX_DOCUMENT_BYTES + 1))


async def test_a_document_with_too_many_operations_is_refused(sources: Sources) -> None:
    paths: dict[str, Any] = {f"/{number}": [] for number in range(MAX_OPERATIONS + 1)}

    with pytest.raises(TooLarge, match="50001 operations"):
        await sources.add("shop", document=document(paths))


async def test_a_large_document_is_imported_like_a_small_one(sources: Sources) -> None:
    small = document(ORDERS)
    large = small.rstrip()[:-1] + b',"x-rest":"' + b"x" * LARGE_DOCUMENT_BYTES + b'"}'

    ours, theirs = await sources.add("small", document=small), await sources.add("large", document=large)

    assert len(theirs.added) == len(ours.added) > 0
    with pytest.raises(InvalidInput, match="line 1, column"):
        await sources.add("broken", document=large[:-1])


@pytest.mark.parametrize(
    ("broken", "where"),
    [
        (b'{"openapi": "3.1.0",\n "paths": {', "line"),
        (b"openapi: 3.1.0\npaths:\n  - a: [", "line"),
        (b'{"openapi": "3.1.0", "paths": ["/a"]}', "`paths`"),
        (b'{"swagger": "7"}', "swagger"),
        (b"[]", "not an object"),
        (b"", "not an object"),
    ],
)
async def test_a_broken_document_says_where_and_makes_no_source(sources: Sources, broken: bytes, where: str) -> None:
    with pytest.raises(InvalidInput, match=where):
        await sources.add("shop", document=broken)

    assert await sources.list() == ()


async def test_a_broken_document_leaves_what_there_was(sources: Sources) -> None:
    await sources.add("shop", document=document(ORDERS))
    before = await sources.get("shop")

    with pytest.raises(InvalidInput):
        await sources.reload("shop", document=b"{")

    after = await sources.get("shop")
    assert replace(after, source=replace(after.source, checked_at=before.source.checked_at)) == before


async def test_a_document_without_a_server_needs_a_base_url(sources: Sources, tools: Tools) -> None:
    lonely = document(ORDERS, servers=[])

    with pytest.raises(InvalidInput, match="base URL"):
        await sources.add("shop", document=lonely)
    await sources.add("shop", document=lonely, base_url="http://shop.lan:8080/v3/")

    tool = (await tools.get("get_orders_by_id")).tool
    assert tool.request is not None
    assert tool.backend is not None
    assert (tool.request.url, tool.backend.base_url) == ("/orders/{id}", "http://shop.lan:8080/v3")


@pytest.mark.req("EXEC-04")
async def test_what_is_missing_to_be_known_is_told(sources: Sources, words_only: Engine) -> None:
    schemes = {
        "token": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    }
    paths = {"/a": {"get": operation(security=[{"token": []}])}, "/b": {"get": operation(security=[{"key": []}, {}])}}
    secured = document(paths, components={"securitySchemes": schemes})

    bare = await sources.add("bare", document=secured, choice=EVERYTHING)
    report = await sources.add(
        "shop",
        document=secured,
        choice=EVERYTHING,
        auth={"token": "shop-token"},
        headers={"X-Team": "{{secret:team}} of ours"},
    )
    await Secrets(words_only.database, b"k" * 32).set("team", "blue")
    later = await sources.get("shop")

    assert (bare.missing_auth, bare.missing_secrets) == (("token",), ())
    assert (report.missing_auth, report.missing_secrets) == ((), ("shop-token", "team"))
    assert later.source.missing_secrets == ("shop-token",)


async def test_how_a_source_is_reached_is_changed_without_its_document(sources: Sources, tools: Tools) -> None:
    made = await sources.add("shop", document=document(ORDERS))

    report = await sources.change("shop", version=made.source.version, auth={"key": "new"}, timeout=7.5, by="bob")

    backend = (await tools.get("get_orders_by_id")).tool.backend
    assert backend is not None
    assert (backend.auth, backend.timeout, backend.source) == ({"key": "new"}, 7.5, "shop")
    assert (report.written, report.source.version, report.source.updated_by) == (True, made.source.version + 1, "bob")
    assert report.source.imported_at == made.source.imported_at


async def test_what_is_taken_of_a_document_is_changed_with_it(sources: Sources) -> None:
    made = await sources.add("shop", document=document(ORDERS))

    with pytest.raises(InvalidInput, match="the source has no URL"):
        await sources.change("shop", version=1, choice=EVERYTHING)
    report = await sources.change("shop", version=1, choice=EVERYTHING, document=document(ORDERS))

    assert (made.added, report.added) == (("get_orders_by_id",), ("get_orders", "post_orders"))
    with pytest.raises(Conflict):
        await sources.change("shop", version=1, timeout=3)
    with pytest.raises(Conflict):
        await sources.reload("shop", version=1, document=document(ORDERS))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": "my shop"}, "letters, digits"),
        ({"name": ""}, "letters, digits"),
        ({"name": "x" * 64}, "letters, digits"),
        ({"base_url": "shop.example.com"}, "not an HTTP URL"),
        ({"base_url": "ftp://shop.example.com"}, "not an HTTP URL"),
        ({"base_url": "https://ann:pw@shop.example.com"}, "name or password"),
        ({"base_url": "https://shop.example.com/?a=1"}, "query"),
        ({"auth": {"key": "a secret value!"}}, "an invalid name of a secret"),
        ({"headers": {"Host": "other"}}, "cannot set the header"),
        ({"headers": {"X Team": "a"}}, "cannot set the header"),
        ({"headers": {"X-Team": "a\r\nX-Admin: 1"}}, "an invalid value"),
        ({"headers": {"X-Team": "{{secret:}}"}}, "an invalid name of a secret"),
        ({"timeout": 0}, "timeout"),
        ({"choice": Choice(tags=("",))}, "empty"),
        ({"url": "ftp://shop.example.com/api.json"}, "not an HTTP URL"),
        ({"url": "file:///etc/passwd"}, "not a name in the folder"),
        ({"url": "file:../shop.json"}, "not a name in the folder"),
        ({"url": "file:shops\\\\..\\\\shop.json"}, "not a name in the folder"),
        ({"url": "https://ann:pw@shop.example.com/api.json"}, "name or password"),
        ({"url": "https://shop.example.com/api.json?v=2&access_token=abc"}, "contains a secret in access_token"),
        ({"headers": {"Authorization": "Bearer abc"}}, "contains a secret"),
        ({"headers": {"X-Api-Key": "abc"}}, "contains a secret"),
    ],
)
async def test_settings_that_cannot_be_used_are_refused(sources: Sources, wrong: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"name": "shop", "document": document(ORDERS), **wrong}

    with pytest.raises(InvalidInput, match=said):
        await sources.add(given.pop("name"), **given)

    assert await sources.list() == ()


@pytest.mark.req("SAFE-03")
async def test_a_document_does_not_take_secrets_to_another_address_unless_that_is_accepted(
    sources: Sources, tools: Tools
) -> None:
    elsewhere = document(ORDERS, servers=[{"url": "https://shop.example.org/v1"}])
    await sources.add("shop", document=document(ORDERS), headers={"Authorization": "Bearer {{secret:shop}}"})
    await sources.add("open", document=document({"/news": ORDERS["/orders/{id}"]}))

    for change in (sources.reload("shop", document=elsewhere), sources.change("shop", version=1, document=elsewhere)):
        with pytest.raises(InvalidInput, match=r"a new address of its service: https://shop\.example\.org"):
            await change
    kept = await tools.get("get_orders_by_id")
    moved = await sources.reload("shop", document=elsewhere, accept_address=True)
    without = await sources.reload("open", document=elsewhere)

    assert kept.tool.request is not None
    assert kept.tool.request.url.startswith(SERVER)
    assert moved.held[0].what == ("destination",), "the address is accepted, and the definition is not yet"
    assert without.held[0].name == "open_get_orders_by_id", "there is no secret to be shown"


async def test_where_a_document_is_from_is_changed_with_it(sources: Sources) -> None:
    relative = document(ORDERS, servers=[{"url": "/v2"}])
    await sources.add("shop", document=relative, url="https://one.example.com/api.json")

    report = await sources.change("shop", version=1, document=relative, url="https://two.example.com/api.json")

    assert report.source.location == "https://two.example.com/api.json"
    assert report.changed[0].what == ("address",)


async def test_a_name_is_taken_once_also_by_two_at_a_time(sources: Sources, tools: Tools) -> None:
    adding = (sources.add("shop", document=document(ORDERS), choice=EVERYTHING) for _ in range(4))

    results = await asyncio.gather(*adding, return_exceptions=True)

    assert sorted(type(result).__name__ for result in results) == [*["AlreadyExists"] * 3, "SourceReport"]
    assert len(await tools.list(source="shop")) == 3


async def test_the_loop_goes_on_while_a_large_document_is_imported(sources: Sources, tools: Tools) -> None:
    paths = {f"/things/{number}": {"get": operation(summary=f"Thing {number}")} for number in range(1500)}
    importing = asyncio.create_task(sources.add("large", document=document(paths), choice=EVERYTHING))
    longest, last, began = 0.0, time.thread_time(), time.process_time()

    while not importing.done():
        await asyncio.wait([importing], timeout=0.01)
        longest, last = max(longest, time.thread_time() - last), time.thread_time()

    spent = time.process_time() - began
    assert len((await importing).added) == 1500
    assert longest < spent / 4, "the loop's own thread did it"


async def test_other_tenants_have_sources_of_their_own(sources: Sources, acme: Engine, egress: Egress) -> None:
    theirs = Sources(acme.database, Tools(acme.database), fetching(Documents(egress)), ProcessCalls())
    await sources.add("shop", document=document(ORDERS))

    with pytest.raises(NotFound):
        await theirs.get("shop")
    with pytest.raises(NotFound):
        await theirs.remove("shop", force=True)
    made = await theirs.add("shop", document=document(ORDERS))

    assert made.added == ("get_orders_by_id",)
    assert len(await sources.list()) == 1


async def test_what_text_cannot_hold_does_not_come_in(sources: Sources) -> None:
    odd = document({"/a": {"get": operation(summary="a\0b\ud800c")}}, info={"title": "T\0", "version": "1\0"})

    report = await sources.add("odd", document=odd, choice=EVERYTHING)
    again = await sources.reload("odd", document=odd)

    assert (report.added, again.written) == (("get_a",), False)
    with pytest.raises(NotFound):
        await sources.get("no\0such\ud800")
