"""Published heads: the end of each chain leaves the database, to the log, a file and a webhook."""

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from holdfast.audit.entries import AuditEntry
from holdfast.audit.heads import HeadPublication, read_heads
from holdfast.audit.sealer import seal_all
from holdfast.core.audit_settings import AuditSettings
from holdfast.core.errors import Forbidden, HoldfastError, InvalidInput, Unavailable
from holdfast.core.ids import uuid7
from holdfast.engine import Engine
from holdfast.execution.egress import AllowedHosts, Egress
from holdfast.execution.webhooks import Webhooks, open_webhooks

pytestmark = pytest.mark.req("MCP-07", "SAFE-07")

AT = "2031-01-01T00:00:00Z"


class Hook:
    """A webhook that keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.status = 200

    async def answer(self, request: web.Request) -> web.Response:
        """Take a message."""
        self.got.append(await request.json())
        return web.Response(status=self.status, headers={"Location": "http://169.254.169.254/"})

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[str]:
        """Its address."""
        app = web.Application()
        app.router.add_post("/", self.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


async def record(engine: Engine, count: int = 3) -> None:
    """Record so many calls, and seal them."""
    for number in range(count):
        await engine.audit.record(AuditEntry(action="tool.call", target=str(number), user="ann"))
    await seal_all(engine.database)


async def test_the_end_of_each_chain_is_published_when_it_has_changed(
    engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)  # of the root logger, as the commands that serve leave it
    caplog.handler.setLevel(logging.NOTSET)
    file, hook = tmp_path / "heads.jsonl", Hook()
    await record(engine)
    async with hook.served() as url, open_webhooks((), url) as post:
        publication = HeadPublication(engine.postgres, AuditSettings(publish_file=file, publish_url=url), post)
        await publication.step()
        await publication.step()
        await record(engine, 2)
        await publication.step()

    lines = file.read_text().splitlines()
    heads = read_heads(file.read_bytes().splitlines(), await engine.database.tenant())
    assert [json.loads(line)["seq"] for line in lines] == [3, 5]
    assert [message["heads"] for message in hook.got] == [[json.loads(line)] for line in lines]
    assert sum("the audit of default ends with the entry" in line for line in caplog.messages) == 2
    assert (await engine.audit.verify(heads=heads)).fault is None


async def test_a_head_that_did_not_arrive_is_published_again(engine: Engine) -> None:
    hook = Hook()
    await record(engine)
    async with hook.served() as url, open_webhooks((), url) as post:
        publication = HeadPublication(engine.postgres, AuditSettings(publish_url=url), post)
        hook.status = 500
        with pytest.raises(Unavailable, match="it answered 500"):
            await publication.step()
        hook.status = 200
        await publication.step()

    assert [message["heads"][0]["seq"] for message in hook.got] == [3, 3]


async def test_a_file_that_cannot_be_written_is_an_error_and_the_webhook_still_gets_the_heads(
    engine: Engine, tmp_path: Path
) -> None:
    hook = Hook()
    await record(engine)
    async with hook.served() as url, open_webhooks((), url) as post:
        publication = HeadPublication(engine.postgres, AuditSettings(publish_file=tmp_path, publish_url=url), post)
        for _ in range(2):
            with pytest.raises(HoldfastError, match="publish_file"):
                await publication.step()

    assert [message["heads"][0]["seq"] for message in hook.got] == [3]


async def test_a_line_that_was_not_written_to_its_end_does_not_spoil_the_next(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "heads.jsonl"
    file.write_bytes(b'{"tenant":"default","ten')
    await record(engine)

    await HeadPublication(engine.postgres, AuditSettings(publish_file=file), unused).step()

    torn, whole = file.read_bytes().splitlines()
    assert read_heads([whole], await engine.database.tenant()).keys() == {3}
    with pytest.raises(InvalidInput, match="line 1 is not a published head"):
        read_heads([torn, whole], await engine.database.tenant())


async def unused(url: str, value: object) -> None:
    """Stands for a webhook that no setting names."""
    raise AssertionError(url)


async def test_a_webhook_is_posted_to_under_the_egress_rules_and_redirects_are_not_followed() -> None:
    hook = Hook()
    hook.status = 307
    async with hook.served() as url, Egress(AllowedHosts()) as egress, open_webhooks((), url) as post:
        with pytest.raises(Forbidden):
            await Webhooks(egress).post(url, {})
        with pytest.raises(Unavailable, match="307"):
            await post(url, {"heads": []})

    assert hook.got == [{"heads": []}]


def test_heads_that_contradict_each_other_are_refused() -> None:
    tenant = uuid7()
    line = json.dumps({"tenant": "default", "tenant_id": str(tenant), "seq": 3, "hash": "%s", "at": AT})

    with pytest.raises(InvalidInput, match="contradict each other about the entry 3"):
        read_heads([(line % "00").encode(), (line % "01").encode()], tenant)
    with pytest.raises(InvalidInput, match="line 2 is not a published head"):
        read_heads([(line % "00").encode(), b"{}"], tenant)


def test_a_file_can_have_the_heads_of_tenants_with_the_same_name_in_different_databases() -> None:
    ours, theirs = uuid7(), uuid7()
    lines = [
        json.dumps({"tenant": "default", "tenant_id": str(each), "seq": 3, "hash": hash, "at": AT}).encode()
        for each, hash in ((ours, "00"), (theirs, "01"))
    ]

    assert read_heads(lines, ours) == {3: b"\0"}
    with pytest.raises(InvalidInput, match="no published head of this audit"):
        read_heads(lines, uuid7())
