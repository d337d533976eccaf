"""Chunks of documents among memories."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.embeddings.store import Store
from holdfast.engine import Engine
from holdfast.memory import Hit, agent, organization, session, user
from holdfast.postgres.database import Database
from tests.knowledge.stored import StoredChunk, StoredDocument, store

pytestmark = pytest.mark.req("KNOW-01", "MEM-04")

LEAVE = StoredDocument(
    "leave.pdf",
    [StoredChunk("Parental leave lasts up to fourteen months.", ("Leave",), 7), "Sick notes are sent to the office."],
    metadata={"kind": "policy"},
    collection="hr",
)


@pytest.fixture
def searching(engine: Engine, models: Store) -> Engine:
    """An engine that has its models."""
    assert models.find(engine.config.memory.embedding.model)
    return engine


def contents(hits: Sequence[Hit]) -> list[str]:
    """What was found, in order."""
    return [hit.memory.content for hit in hits]


async def test_a_search_of_the_organization_ranks_memories_and_chunks_together(searching: Engine) -> None:
    await searching.memory.remember(organization(), "Parental leave was extended to fourteen months in May.")
    await searching.memory.remember(organization(), "The coffee machine is on the second floor.")
    [document] = await store(searching, LEAVE)

    hits = await searching.memory.search(organization(), "How long is parental leave?", explain=True)

    assert set(contents(hits[:2])) == {
        "Parental leave lasts up to fourteen months.",
        "Parental leave was extended to fourteen months in May.",
    }
    chunk = next(hit for hit in hits if hit.memory.content.startswith("Parental leave lasts"))
    memory = chunk.memory
    assert (memory.type, memory.source, memory.owner, memory.document) == (
        "knowledge",
        "leave.pdf",
        organization(),
        document,
    )
    assert (memory.metadata, memory.importance, memory.embedded) == ({"kind": "policy"}, 1.0, True)
    assert chunk.citation == "leave.pdf, p. 7, characters 0-43"
    assert [hit.citation for hit in hits if hit.memory.document is None] == [None, None]
    for hit in hits:
        assert hit.parts is not None
        assert hit.parts.total == pytest.approx(hit.score, abs=1e-6)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


async def test_a_chunk_can_be_fetched_by_the_id_that_a_search_returned(searching: Engine) -> None:
    await store(searching, LEAVE)

    [hit, *_] = await searching.memory.search(organization(), "parental leave")
    memory = await searching.memory.get(hit.memory.id)

    assert (memory.content, memory.type, memory.document) == (hit.memory.content, "knowledge", hit.memory.document)


async def test_a_context_has_chunks_of_each_owner_within_the_limits(searching: Engine) -> None:
    await store(
        searching,
        StoredDocument("ours", [f"Tea is served at {n} o'clock." for n in range(8)]),
        StoredDocument("hers", [f"Ann drinks tea number {n}." for n in range(8)], owner=user("ann")),
        StoredDocument("his", [f"Bob drinks tea number {n}." for n in range(8)], owner=user("bob")),
        StoredDocument("agent's", [f"Offer tea {n} to guests." for n in range(8)], owner=agent("host")),
    )
    await searching.memory.remember(session("web", user="ann"), "She asks for tea")

    hits = await searching.memory.context("tea", session="web", user="ann", agent="host", limits={"organization": 4})

    counts = {
        scope: sum(hit.memory.owner.scope == scope for hit in hits)
        for scope in ("session", "user", "agent", "organization")
    }
    assert counts == {"session": 1, "user": 5, "agent": 3, "organization": 4}
    assert {hit.memory.source for hit in hits} == {None, "ours", "hers", "agent's"}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@pytest.mark.parametrize(
    ("limits", "is_found"),
    [
        ({}, True),
        ({"collections": ["hr"]}, True),
        ({"collections": ["other"]}, False),
        ({"collections": []}, False),
        ({"types": ["knowledge"]}, True),
        ({"types": ["fact"]}, False),
        ({"types": []}, False),
        ({"where": {"kind": "policy"}}, True),
        ({"where": {"kind": "menu"}}, False),
        ({"since": datetime.now(UTC) - timedelta(days=1)}, True),
        ({"since": datetime.now(UTC) + timedelta(days=1)}, False),
        ({"until": datetime.now(UTC) - timedelta(days=1)}, False),
        ({"as_of": datetime.now(UTC) - timedelta(days=1)}, False),
        ({"as_of": datetime.now(UTC) + timedelta(days=1)}, True),
        ({"min_importance": 1.0}, True),
        ({"limit": 0}, False),
    ],
)
async def test_filters_hold_for_chunks_and_why_not_names_the_filter(
    engine: Engine, limits: dict[str, Any], is_found: bool
) -> None:
    leave = StoredDocument(LEAVE.name, [StoredChunk("Parental leave lasts.")], metadata=LEAVE.metadata, collection="hr")
    await store(engine, leave)
    [chunk] = await engine.memory.search(organization(), "parental leave")

    hits = await engine.memory.search(organization(), "parental leave", **limits)
    why = await engine.memory.why_not(chunk.memory.id, organization(), "parental leave", **limits)

    assert [hit.memory.id for hit in hits] == ([chunk.memory.id] if is_found else [])
    assert (why.reason == "returned") == is_found, why
    assert is_found or "limit" in limits or why.reason in ("filtered", "not yet valid"), why


async def test_what_one_agent_stored_is_asked_of_memories_alone(engine: Engine) -> None:
    await store(engine, StoredDocument("diary", ["tea with lemon"], owner=user("ann")))
    await engine.memory.remember(user("ann", agent="host"), "tea with milk")

    by_agent = await engine.memory.search(user("ann", agent="host"), "tea")
    by_all = await engine.memory.search(user("ann"), "tea")

    assert contents(by_agent) == ["tea with milk"]
    assert sorted(contents(by_all)) == ["tea with lemon", "tea with milk"]


async def test_chunks_of_others_and_of_other_tenants_are_not_found(engine: Engine) -> None:
    await engine.tenants.create("acme")
    await store(engine.tenant("acme"), StoredDocument("theirs", ["tea of theirs"]))
    await store(engine, StoredDocument("bob's", ["tea of bob"], owner=user("bob")))

    hits = await engine.memory.context("tea", user="ann")

    assert hits == []


@pytest.mark.req("MEM-03")
async def test_memories_and_chunks_of_all_owners_are_one_round_trip(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store(engine, LEAVE, StoredDocument("hers", ["tea"], owner=user("ann")))
    await engine.memory.remember(user("ann"), "tea")
    await engine.memory.context("tea", user="ann")
    sent: list[str] = []
    for name in ("one", "all", "value", "run", "many"):
        real = getattr(Database, name)

        def spy(self: Database, statement: str, *args: Any, _real: Any = real, **options: Any) -> Any:
            sent.append(statement)
            return _real(self, statement, *args, **options)

        monkeypatch.setattr(Database, name, spy)

    hits = await engine.memory.context("tea", user="ann")

    assert len(sent) == 1
    assert {hit.memory.source for hit in hits} == {None, "leave.pdf", "hers"}


async def test_recalled_chunks_are_counted_nowhere(engine: Engine) -> None:
    await store(engine, LEAVE)
    memory = await engine.memory.remember(organization(), "Parental leave was discussed")
    usage = engine.memory._recall._usage  # pyright: ignore[reportPrivateUsage]

    hits = await engine.memory.search(organization(), "parental leave")

    assert len(hits) == 3
    assert [set(counts) for counts in usage._counts.values()] == [{memory.id}]  # pyright: ignore[reportPrivateUsage]
