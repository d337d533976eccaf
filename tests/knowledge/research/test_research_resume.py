"""Research goes on after its process has ended, without paying again; it can be cancelled and resumed."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.core.config import Config, load_config
from holdfast.core.errors import Unavailable
from holdfast.core.ids import uuid7
from holdfast.engine import Engine, open_engine
from holdfast.knowledge.research import Budget, ResearchState
from holdfast.knowledge.research.research import report_of
from holdfast.llm.model import ModelRequest
from tests.knowledge.research.conftest import handbook
from tests.knowledge.research.scholar import Scholar, answer_by_rules
from tests.knowledge.research.test_research import check_citations
from tests.knowledge.stored import store
from tests.processes import Processes

QUESTION = "How many windows do the towers of the harbour have?"
PROGRAM = """
import asyncio, sys, uuid
from holdfast.core.config import load_config
from holdfast.engine import open_engine

async def main():
    config = load_config({"database.url": sys.argv[1], "data": sys.argv[2], "memory.embedding.fetch": False,
        "llm.model": "openai:fake", "llm.base_url": sys.argv[3], "llm.api_key": "x",
        "memory.knowledge.research.lease": 1.0})
    async with open_engine(config=config) as engine:
        if len(sys.argv) > 4:
            question = "How many windows do the towers of the harbour have?"
            await engine.research.start(question, id=uuid.UUID(sys.argv[4]))
            print("started", flush=True)
            await asyncio.sleep(60)

asyncio.run(main())
"""


class FakeServer:
    """A server like OpenAI's, which counts requests by their prompt; from one request on, it does not answer."""

    def __init__(self) -> None:
        self.scholar = Scholar()
        self.prompts: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.silent_from: int | None = None
        self.is_silent = asyncio.Event()
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length:")[2].partition("\r\n")[0])
            body = json.loads(await reader.readexactly(length))
            prompt = json.dumps(body["messages"])
            self.prompts[prompt] += 1
            if self.silent_from is not None and self.prompts.total() >= self.silent_from:
                self.is_silent.set()
                await reader.read()  # until the client is gone
                return
            request = msgspec.convert(
                {"messages": body["messages"], "max_tokens": body.get("max_tokens")}, ModelRequest
            )
            chunks: list[dict[str, Any]] = [
                {"choices": [{"index": 0, "delta": {"content": answer_by_rules(request)}}]},
                {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10}},
            ]
            events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
            self.answered[prompt] += 1
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + events.encode()
            )
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def fake_server() -> AsyncGenerator[FakeServer]:
    """A running server."""
    fake = FakeServer()
    server = await asyncio.start_server(fake.handle, "127.0.0.1", 0)
    fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield fake
    finally:
        server.close()


@pytest.mark.req("KNOW-04")
@pytest.mark.parametrize(
    "silent_from",
    [2, 7, *(pytest.param(n, marks=pytest.mark.soak(minutes=1)) for n in (1, 3, 4, 5, 6, 8, 9, 10, 11))],
)
async def test_after_a_kill_nothing_is_asked_twice_but_what_was_under_way(
    config: Config, no_models: None, tmp_path: Path, processes: Processes, silent_from: int
) -> None:
    flags = {"llm.model": "openai:fake", "llm.api_key": "x", "memory.knowledge.research.lease": 1.0}
    id = uuid7()
    assert config.database.url is not None
    url = config.database.url.get_secret_value()
    (tmp_path / "program.py").write_text(PROGRAM)
    async with asyncio.timeout(100), fake_server() as fake:
        base = {"database.url": url, "data": tmp_path / "data", "memory.embedding.fetch": False}
        settings = load_config({**base, **flags, "llm.base_url": fake.url}, environ={}, cwd=tmp_path)
        async with open_engine(config=settings) as engine:
            await store(engine, handbook(120, filler=80))
        fake.silent_from = silent_from
        process = processes.start(
            str(tmp_path / "program.py"), url, str(tmp_path / "data"), fake.url, str(id),
            environment={"XDG_CACHE_HOME": str(tmp_path / "cache")},
        )  # fmt: skip
        await fake.is_silent.wait()
        process.kill()
        under_way = sum((fake.prompts - fake.answered).values())
        fake.silent_from = None

        async with open_engine(config=settings) as engine:
            report = report_of(await engine.research.wait(id))
            checked = await check_citations(engine, report)
            run = await engine.research.get(id)
            claims = await engine.database.value("select claims from research where tenant_id = $1 and id = $2", id)

    assert claims == 2
    assert len(report.statements) == checked > 50
    repeated = [count for count in fake.prompts.values() if count > 1]
    assert under_way <= len(repeated) <= 4
    assert all(count == 2 for count in repeated)
    # A request counts before it is sent: the kill can come between.
    assert fake.prompts.total() <= run.calls <= fake.prompts.total() + 4
    assert run.tokens <= run.budget.tokens


async def test_an_engine_that_closes_gives_research_back_and_another_goes_on(
    config: Config, model: Scholar, no_models: None
) -> None:
    model.gate = asyncio.Event()
    async with open_engine(config=config) as first:
        await store(first, handbook(100))
        started = await first.research.start(QUESTION)
        await model.wait_for(1)
    model.gate.set()

    async with open_engine(config=config) as second:
        run = await second.research.wait(started.id, timeout=60)

    assert run.state == "done"
    assert model.steps["plan"] == 2
    assert {count for step, count in model.steps.items() if step in ("report", "gaps")} == {1}
    assert run.calls == len(model.requests)


async def test_cancelled_research_asks_nothing_more_and_can_be_resumed(engine: Engine, model: Scholar) -> None:
    await store(engine, handbook(100))
    model.gate = asyncio.Event()
    started = await engine.research.start(QUESTION)
    await model.wait_for(1)

    await engine.research.cancel(started.id)
    cancelled = await engine.research.wait(started.id)
    asked = len(model.requests)
    model.gate = None
    resumed = await engine.research.resume(started.id)
    done = await engine.research.wait(started.id)

    assert cancelled.state == "cancelled"
    assert asked == 1
    assert resumed.state in ("queued", "running")
    assert done.state == "done"
    assert done.report is not None
    assert done.calls == len(model.requests)


async def test_a_model_that_fails_ends_research_and_a_resumed_one_asks_only_for_what_is_missing(
    engine: Engine, model: Scholar
) -> None:
    await store(engine, handbook(100))
    model.answers["report"] = lambda request: {"fail": {"status": 401, "message": "bad key"}}
    started = await engine.research.start(QUESTION)
    failed = await engine.research.wait(started.id)
    before = model.steps
    del model.answers["report"]

    await engine.research.resume(started.id)
    report = report_of(await engine.research.wait(started.id))

    assert failed.state == "failed"
    assert failed.error is not None
    assert failed.error["code"] == "model_failed"
    with pytest.raises(Unavailable, match=r"the research .* failed: .*bad key"):
        report_of(failed)
    assert model.steps - before == Counter(report=1)
    assert len(report.statements) == 100


async def test_a_larger_budget_lets_failed_research_go_further(engine: Engine, model: Scholar) -> None:
    await store(engine, handbook(10))
    model.answers["report"] = lambda request: {"fail": {"status": 401}}
    started = await engine.research.start(QUESTION, budget=Budget(5, 100_000))
    await engine.research.wait(started.id)

    resumed = await engine.research.resume(started.id, budget=Budget(50, 90_000))

    assert resumed.budget == Budget(50, 100_000)


async def test_research_that_nobody_works_on_is_cancelled_at_once(engine: Engine, model: Scholar) -> None:
    await store(engine, handbook(2))
    model.gate = asyncio.Event()
    started = [await engine.research.start(QUESTION) for _ in range(5)]
    states: list[ResearchState] = [(await engine.research.get(each.id)).state for each in started]

    await engine.research.cancel(started[-1].id)

    assert states == ["running"] * 4 + ["queued"]
    assert (await engine.research.get(started[-1].id)).state == "cancelled"
    model.gate.set()
    for each in started[:-1]:
        assert (await engine.research.wait(each.id)).state == "done"


async def test_removed_research_ends(engine: Engine, model: Scholar) -> None:
    await store(engine, handbook(2))
    model.gate = asyncio.Event()
    started = await engine.research.start(QUESTION)
    await model.wait_for(1)

    await engine.research.remove(started.id)

    assert await engine.research.list() == []
    assert not await engine.research.exists(started.id)
