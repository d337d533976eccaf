"""Sources that are reloaded when their documents change, and that follow them. See `test_pins.py` for others."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from aiohttp import web

from holdfast.core.config import Config
from holdfast.core.errors import Forbidden, InvalidInput, NotFound
from holdfast.engine import Engine, open_engine
from holdfast.skills.sources import reloads
from holdfast.skills.sources.checks import SourceChecks
from holdfast.skills.sources.reloads import SourceReloads
from holdfast.skills.sources.reports import SourceEntry
from holdfast.skills.sources.source import Choice
from tests.execution.backend import Service

pytestmark = pytest.mark.req("SKILL-05", "MCP-03")

EVERYTHING = Choice(everything=True)
PATIENCE = 10  # seconds


def document(*paths: str, summary: str = "List them") -> bytes:
    operation = {"summary": summary, "responses": {"200": {"description": "so"}}}
    info, servers = {"title": "Shop", "version": "1"}, [{"url": "https://shop.example.com"}]
    stated = {
        "openapi": "3.1.0",
        "info": info,
        "servers": servers,
        "paths": {path: {"get": operation} for path in paths},
    }
    return json.dumps(stated).encode()


class Published:
    """A document on the web with an ETag; it counts how it was asked for."""

    def __init__(self, service: Service) -> None:
        self.url = f"{service.url}/api.json"
        self.body = b""
        self.etag = ""
        self.status = 200
        self.sent = 0
        self.unchanged = 0
        service.will_answer("/api.json", self._answer)

    def publish(self, body: bytes, etag: str = "", status: int = 200) -> None:
        """Replace the document."""
        self.body, self.etag, self.status = body, etag, status

    async def _answer(self, request: web.Request) -> web.Response:
        headers = {"ETag": self.etag} if self.etag else {}
        if self.etag and request.headers.get("If-None-Match") == self.etag:
            self.unchanged += 1
            return web.Response(status=304, headers=headers)
        self.sent += 1
        return web.Response(body=self.body, status=self.status, headers=headers)


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """A service on this machine."""
    async with Service().serving() as service:
        yield service


@pytest.fixture
def published(service: Service) -> Published:
    """A document of that service."""
    return Published(service)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the settings."""
    folder = tmp_path / "documents"
    folder.mkdir()
    return folder


@pytest.fixture
def config(config: Config, folder: Path) -> Config:
    """The settings of the engine: it may call this machine, and has a folder of documents."""
    execution = config.execution.model_copy(update={"allow_private": ("127.0.0.1",)})
    sources = config.sources.model_copy(update={"folder": folder})
    return config.model_copy(update={"execution": execution, "sources": sources})


@pytest.fixture
async def engine(config: Config, no_models: None) -> AsyncIterator[Engine]:
    """An engine that reloads sources."""
    async with open_engine(config=config) as engine:
        yield engine


async def until(engine: Engine, is_so: Callable[[SourceEntry], bool], name: str = "shop") -> SourceEntry:
    """The source, as soon as a check has made it so."""
    async with asyncio.timeout(PATIENCE):
        while not is_so(found := (await engine.sources.get(name)).source):  # noqa: ASYNC110 - the row tells
            await asyncio.sleep(0.05)
    return found


async def tools(engine: Engine) -> list[str]:
    return [entry.tool.name for entry in await engine.tools.list(source="shop")]


async def test_a_document_that_changes_is_imported_again(engine: Engine, published: Published) -> None:
    published.publish(document("/orders"), etag='"1"')
    await engine.sources.add("shop", url=published.url, choice=EVERYTHING, pin="follow", reload_seconds=1)

    published.publish(document("/orders", "/parcels"), etag='"2"')
    found = await until(engine, lambda source: source.tools == 2)

    assert await tools(engine) == ["get_orders", "get_parcels"]
    assert (found.updated_by, found.error) == ("holdfast", "")


async def test_an_unchanged_document_is_neither_sent_nor_imported_again(engine: Engine, published: Published) -> None:
    published.publish(document("/orders"), etag='"1"')
    await engine.sources.add("shop", url=published.url, choice=EVERYTHING, pin="follow", reload_seconds=1)
    added = (await engine.sources.get("shop")).source
    assert added.checked_at is not None

    async with asyncio.timeout(PATIENCE):
        while published.unchanged < 2:  # noqa: ASYNC110 - the document tells
            await asyncio.sleep(0.05)
    found = (await engine.sources.get("shop")).source

    assert published.sent == 2  # the first check has no validators yet
    assert (found.version, found.imported_at) == (added.version, added.imported_at)
    assert found.checked_at is not None
    assert found.checked_at > added.checked_at


async def test_a_document_that_is_no_longer_one_is_an_error_and_the_tools_stay(
    engine: Engine, published: Published
) -> None:
    published.publish(document("/orders"))
    await engine.sources.add("shop", url=published.url, choice=EVERYTHING, pin="follow", reload_seconds=1)

    published.publish(document())
    empty = await until(engine, lambda source: source.error != "")
    published.publish(b"<html>Be right back</html>")
    page = await until(engine, lambda source: "no longer has tools" not in source.error)
    published.publish(b"", status=503)
    gone = await until(engine, lambda source: "503" in source.error)
    kept = await tools(engine)
    published.publish(document("/orders", summary="All orders"))
    await engine.source_checks.ask("shop")
    back = await until(engine, lambda source: source.error == "")

    assert "the source is unchanged" in empty.error
    assert page.error
    assert (gone.tools, kept, back.tools) == (1, ["get_orders"], 1)
    assert (await engine.tools.get("get_orders")).tool.description == "All orders"


async def test_whoever_asks_for_a_check_gets_it_soon(engine: Engine, published: Published) -> None:
    published.publish(document("/orders"))
    await engine.sources.add("shop", url=published.url, choice=EVERYTHING, pin="follow", reload_seconds=3600)

    published.publish(document("/orders", "/parcels"))
    await engine.source_checks.ask("shop")

    await until(engine, lambda source: source.tools == 2)


async def test_a_source_that_is_not_to_be_reloaded_is_not(engine: Engine, published: Published) -> None:
    published.publish(document("/orders"))
    await engine.sources.add("shop", url=published.url, choice=EVERYTHING, pin="follow", reload_seconds=0)
    await engine.sources.add("other", url=published.url, choice=EVERYTHING, pin="follow", reload_seconds=3600)

    published.publish(document("/orders", "/parcels"))
    await engine.source_checks.ask("shop")
    await engine.source_checks.ask("other")
    await until(engine, lambda source: source.tools == 2, "other")

    assert await tools(engine) == ["get_orders"]


async def test_new_secrets_are_not_sent_to_a_new_address_by_itself(engine: Engine, published: Published) -> None:
    published.publish(document("/orders"))
    headers = {"X-Key": "{{secret:shop-key}}"}
    await engine.sources.add(
        "shop", url=published.url, choice=EVERYTHING, pin="follow", headers=headers, reload_seconds=1
    )

    published.publish(document("/orders").replace(b"shop.example.com", b"thief.example.com"))
    found = await until(engine, lambda source: source.error != "")

    assert "https://thief.example.com" in found.error
    request = (await engine.tools.get("get_orders")).tool.request
    assert request is not None
    assert request.url.startswith("https://shop.example.com")


async def test_each_import_tells_what_it_changed_and_keeps_the_former_definitions(
    engine: Engine, published: Published
) -> None:
    published.publish(document("/orders", "/parcels"))
    await engine.sources.add("shop", url=published.url, choice=EVERYTHING, pin="follow", reload_seconds=3600, by="ann")

    published.publish(document("/orders", "/returns", summary="All of them"))
    await engine.source_checks.ask("shop")
    await until(engine, lambda source: source.version > 1)
    last, first = await engine.sources.imports.list("shop")
    details = await engine.sources.imports.get("shop", last.revision)

    assert (first.by, first.added, last.by) == ("ann", 2, "holdfast")
    assert (last.added, last.changed, last.removed) == (1, 1, 1)
    assert [(tool.name, tool.change, tool.what) for tool in details.tools] == [
        ("get_orders", "changed", ("description",)),
        ("get_parcels", "removed", ()),
        ("get_returns", "added", ()),
    ]
    orders, parcels, returns = details.tools
    assert orders.before is not None
    assert orders.after is not None
    assert (orders.before["description"], orders.after["description"]) == ("List them", "All of them")
    assert parcels.before is not None
    assert (parcels.before["api_endpoint"], parcels.after, returns.before) == (
        "https://shop.example.com/parcels",
        None,
        None,
    )


async def test_the_newest_imports_are_kept(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, clocked: Callable[[int], Any]
) -> None:
    monkeypatch.setattr("holdfast.skills.sources.imports.KEPT", 2)
    await engine.sources.add("shop", document=document("/orders"), choice=EVERYTHING, pin="follow")
    for number in range(3):
        await engine.sources.reload("shop", document=document("/orders", summary=f"Version {number}"))
    young = await engine.sources.imports.list("shop")
    await clocked(2)
    await engine.sources.reload("shop", document=document("/orders", summary="Last"))

    kept = await engine.sources.imports.list("shop")
    history = await engine.history.of("tool", "get_orders")

    assert (len(young), len(kept), len(history)) == (4, 2, 2)


async def test_imports_that_nobody_needs_within_the_hour_are_names_without_definitions(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.skills.sources.imports.KEPT", 3)
    await engine.sources.add("shop", document=document("/orders"), choice=EVERYTHING, pin="follow")
    for number in range(4):
        await engine.sources.reload("shop", document=document("/orders", summary=f"Version {number}"))
    by_number = [change.after is not None for change in await engine.history.of("tool", "get_orders")]
    monkeypatch.setattr("holdfast.skills.sources.imports.KEPT_BYTES", 1)
    await engine.sources.reload("shop", document=document("/orders", summary="Last"))

    history = await engine.history.of("tool", "get_orders")
    last, before, *_ = await engine.sources.imports.list("shop")
    former = await engine.sources.imports.get("shop", before.revision)
    newest = await engine.sources.imports.get("shop", last.revision)

    assert by_number == [True, True, True, False, False]
    assert [change.after is not None for change in history] == [True, False, False, False, False, False]
    assert [(tool.name, tool.change, tool.after) for tool in former.tools] == [("get_orders", "changed", None)]
    assert [tool.what for tool in newest.tools] == [("description",)]


async def test_automatic_reloads_that_change_no_tools_leave_no_lasting_history(
    engine: Engine, published: Published, clocked: Callable[[int], Any]
) -> None:
    published.publish(document("/orders"))
    await engine.sources.add("shop", url=published.url, choice=EVERYTHING, pin="follow", reload_seconds=3600, by="ann")
    for number in range(2, 5):
        published.publish(document("/orders").replace(b'"version": "1"', f'"version": "{number}"'.encode()))
        await engine.source_checks.ask("shop")
        await until(engine, lambda source, number=number: source.label == str(number))
    before = await engine.history.of("source", "shop")

    await clocked(2)
    published.publish(document("/orders").replace(b'"version": "1"', b'"version": "5"'))
    await engine.source_checks.ask("shop")
    await until(engine, lambda source: source.label == "5")
    after = await engine.history.of("source", "shop")

    assert [change.by for change in before] == ["holdfast", "holdfast", "holdfast", "ann"]
    assert [change.by for change in after] == ["holdfast", "ann"]
    assert all(change.after and not {"offers", "report"} & change.after.keys() for change in after)


@pytest.fixture
def clocked(engine: Engine) -> Callable[[int], Any]:
    """Moves what was imported and changed some hours back."""

    async def move(hours: int) -> None:
        async with engine.postgres.owner() as owner:
            for table in ("source_import", "registry_change"):
                await owner.script(f"update {table} set at = at - interval '{hours} hours'")

    return move


async def test_a_file_in_the_folder_is_imported_again_when_it_changes(engine: Engine, folder: Path) -> None:
    (folder / "shop.json").write_bytes(document("/orders"))
    added = await engine.sources.add("shop", url="file:shop.json", choice=EVERYTHING, pin="follow")

    (folder / "new.json").write_bytes(document("/orders", "/parcels"))
    (folder / "new.json").replace(folder / "shop.json")
    await until(engine, lambda source: source.tools == 2)
    (folder / "shop.json").unlink()
    missing = await until(engine, lambda source: source.error != "")
    (folder / "shop.json").write_bytes(document("/orders"))
    await until(engine, lambda source: source.tools == 1 and source.error == "")

    assert added.source.location == "file:shop.json"
    assert ("there is no such file" in missing.error, missing.tools) == (True, 2)


async def test_a_source_reads_no_file_beside_the_folder_and_none_for_other_tenants(
    engine: Engine, folder: Path
) -> None:
    (folder / "shop.json").write_bytes(document("/orders"))
    (folder.parent / "secret.json").write_bytes(document("/orders"))
    (folder / "link.json").symlink_to(folder.parent / "secret.json")
    await engine.tenants.create("acme")

    for url, error in (
        ("file:link.json", NotFound),
        ("file:none.json", NotFound),
        ("file:../secret.json", InvalidInput),
    ):
        with pytest.raises(error):
            await engine.sources.add("shop", url=url, choice=EVERYTHING, pin="follow")
    with pytest.raises(Forbidden, match="default tenant"):
        await engine.tenant("acme").sources.add("shop", url="file:shop.json", choice=EVERYTHING, pin="follow")

    assert await engine.sources.list() == ()


async def test_a_check_of_a_process_that_died_is_done_by_another_one(engine: Engine, published: Published) -> None:
    published.publish(document("/orders"))
    added = await engine.sources.add("shop", url=published.url, choice=EVERYTHING, pin="follow", reload_seconds=3600)
    claim = await engine.source_checks.claim_one(added.source.id)
    assert claim is not None

    published.publish(document("/orders", "/parcels"))
    taken = await engine.source_checks.claim_one(added.source.id)
    async with engine.postgres.owner() as owner:
        await owner.script("update source_check set due_at = now(), claimed_until = now()")  # its lease has expired
    await until(engine, lambda source: source.tools == 2)
    late = await engine.source_checks.check(claim)

    assert taken is None
    assert late is False
    assert (await engine.sources.get("shop")).source.tools == 2


async def test_what_is_asked_during_a_check_is_checked_again(engine: Engine, service: Service) -> None:
    asked, go = asyncio.Event(), asyncio.Event()
    answers = [document("/orders"), document("/orders"), document("/orders", "/parcels")]

    async def answer(_: web.Request) -> web.Response:
        body = answers.pop(0) if len(answers) > 1 else answers[0]
        if len(answers) == 1:
            asked.set()
            await go.wait()
        return web.Response(body=body)

    service.will_answer("/api.json", answer)
    await engine.sources.add(
        "shop", url=f"{service.url}/api.json", choice=EVERYTHING, pin="follow", reload_seconds=3600
    )
    await engine.source_checks.ask("shop")
    async with asyncio.timeout(PATIENCE):
        await asked.wait()
    await engine.source_checks.ask("shop")
    go.set()

    await until(engine, lambda source: source.tools == 2)


async def test_a_server_that_announces_changes_without_end_is_asked_for_once_a_second(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    async def ask(_: SourceChecks, name: str) -> None:
        asked.append(monotonic())

    monkeypatch.setattr(SourceChecks, "ask", ask)
    monkeypatch.setattr(reloads, "SETTLE", 0.2)
    tenant = str(await engine.database.tenant())

    job = SourceReloads(engine.postgres, lambda _: engine.source_checks)

    def asking() -> list[asyncio.Task[Any]]:
        return [task for task in asyncio.all_tasks() if task.get_name() == f"holdfast {reloads.NAME} shop"]

    for _ in range(50):
        for _ in range(100):
            job.ask(tenant, "shop")
        await asyncio.sleep(0.01)  # in all, more than two of its rests
    tasks = asking()
    last = monotonic()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*tasks)

    assert len(tasks) == 1
    assert len(asked) < 50
    assert asked[-1] > last, "what is announced during a rest is asked after it"


async def test_slow_documents_of_some_tenants_do_not_delay_those_of_others(
    engine: Engine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, go, begun = True, asyncio.Event(), 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal begun
        if slow and request.path == "/slow.json":
            begun += 1
            await go.wait()
        return web.Response(body=document("/orders"))

    for path in ("/slow.json", "/quick.json"):
        service.will_answer(path, answer)
    names = ("one", "two", "three")
    for name in names:
        await engine.tenants.create(name)
    one, two, three = [engine.tenant(await engine.tenants.id_of(name)) for name in names]
    given: dict[str, Any] = {"document": document("/orders"), "choice": EVERYTHING, "reload_seconds": 3600}
    for tenant in (one, two):
        for number in range(12):
            await tenant.sources.add(f"shop-{number}", url=f"{service.url}/slow.json", **given)
    await three.sources.add("shop", url=f"{service.url}/quick.json", **given)
    before = (await three.sources.get("shop")).source.checked_at
    assert before is not None
    for tenant in (one, two):
        for number in range(12):
            await tenant.source_checks.ask(f"shop-{number}")
    async with asyncio.timeout(PATIENCE):
        while begun < 12:  # noqa: ASYNC110 - each of them waits
            await asyncio.sleep(0.05)

    await three.source_checks.ask("shop")
    found = await until(three, lambda source: (source.checked_at or before) > before)
    most = begun
    slow = False
    go.set()

    assert found.error == ""
    assert most < reloads.AT_ONCE
