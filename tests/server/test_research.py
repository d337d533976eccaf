"""Research over HTTP, and as a tool."""

import json

import pytest

from holdfast.agents.research_tools import research_tools
from holdfast.core.config import Config
from holdfast.core.ids import uuid7
from holdfast.engine import Engine
from holdfast.memory import user
from holdfast.skills.run import Run
from tests.knowledge.research.conftest import handbook
from tests.knowledge.research.scholar import Scholar, caller_of
from tests.knowledge.stored import StoredDocument, store
from tests.server.conftest import make_key
from tests.server.wire import Site

pytestmark = pytest.mark.req("KNOW-04")

QUESTION = "How many windows do the towers of the harbour have?"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Scholar:
    """The model that research asks."""
    model = Scholar()
    monkeypatch.setattr("holdfast.engine.Caller", caller_of(model))
    return model


@pytest.fixture
def config(config: Config, model: Scholar, no_models: None) -> Config:
    """The settings of an engine with this model, which finds by words alone."""
    return config


async def test_research_is_started_followed_and_read(site: Site, key: str, model: Scholar) -> None:
    await store(site.engine, handbook(3))

    started = await site.ask("POST", "/api/research", key=key, json={"question": QUESTION, "calls": 20})
    path = f"/api/research/{started.json()['id']}"
    stream = await site.ask("GET", f"{path}/events", key=key, headers={"Accept": "text/event-stream"})
    listed = (await site.ask("GET", f"{path}/events", key=key)).json()
    detail = (await site.ask("GET", path, key=key)).json()

    assert started.status == 202
    kinds = [line.removeprefix(b"event: ") for line in stream.body.splitlines() if line.startswith(b"event: ")]
    assert kinds == [b"corpus", b"queries", b"found", b"chosen", b"read", b"report", b"done"]
    assert [event["kind"].encode() for event in listed["events"]] == kinds[:-1]
    assert listed["has_ended"]
    assert detail["research"]["state"] == "done"
    assert detail["research"]["budget"]["calls"] == 20
    assert len(detail["research"]["report"]["statements"]) == 3
    assert "## Sources" in detail["text"]


async def test_a_stream_goes_on_after_the_last_event(site: Site, key: str, model: Scholar) -> None:
    await store(site.engine, handbook(3))
    run = await site.engine.research.start(QUESTION, user="local")
    await site.engine.research.wait(run.id)

    headers = {"Accept": "text/event-stream", "Last-Event-ID": "5"}
    stream = await site.ask("GET", f"/api/research/{run.id}/events", key=key, headers=headers)

    events = [json.loads(line.partition(b": ")[2]) for line in stream.body.splitlines() if line.startswith(b"data: ")]
    assert [event["kind"] for event in events] == ["report", "done"]


async def test_the_budget_cannot_exceed_that_of_the_settings(site: Site, key: str, model: Scholar) -> None:
    started = await site.ask(
        "POST",
        "/api/research",
        key=key,
        json={"question": QUESTION, "calls": 100_000, "tokens": 10_000_000_000},
    )

    assert started.json()["budget"] == {"calls": 200, "tokens": 2_000_000, "cost": None}


async def test_a_user_sees_their_own_research_and_reads_documents_that_they_may_read(
    engine: Engine, site: Site, model: Scholar
) -> None:
    bob = await make_key(engine, "bob", scopes=["read", "write"])
    [anns, _] = await store(
        engine,
        StoredDocument("anns.md", ["Fact 1 is that windows are red."], owner=user("ann")),
        StoredDocument("ours.md", ["Fact 2 is that windows are blue."]),
    )
    hers = await engine.research.start("windows", user="ann")
    await engine.research.wait(hers.id)

    named = await site.ask("POST", "/api/research", key=bob, json={"question": "windows", "documents": [str(anns)]})
    his = (await site.ask("POST", "/api/research", key=bob, json={"question": "windows"})).json()
    run = await engine.research.wait(his["id"])
    seen = [(await site.ask("GET", f"/api/research/{id}", key=bob)).status for id in (hers.id, his["id"])]
    listed = (await site.ask("GET", "/api/research", key=bob)).json()["research"]

    assert named.status == 404
    assert run.report is not None
    assert [statement.text for statement in run.report.statements] == ["Fact 2 is that windows are blue."]
    assert seen == [404, 200]
    assert [each["id"] for each in listed] == [his["id"]]


async def test_an_agent_analyzes_a_document_and_gets_citations(engine: Engine, model: Scholar) -> None:
    await store(engine, handbook(3), handbook(2, name="other.pdf"))
    [tool] = research_tools(engine.research, engine.knowledge, None)
    run = Run("ann", "desk", "web", uuid7(), uuid7(), "call-1", "key-1")
    assert tool.function is not None

    found = await tool.function.run(run, {"question": "windows", "document": "other.pdf"}, name="tool")
    again = await tool.function.run(run, {"question": "windows", "document": "other.pdf"}, name="tool")

    assert "Fact 1 is that tower 1 of the harbour has 7 windows. [2]" in found
    assert "1. Handbook, Towers / Part 0, page 1, characters 0-" in found
    assert again == found
    assert model.steps["report"] == 1
