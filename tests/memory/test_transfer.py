import asyncio
import base64
import json
import struct
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast.core.config import Config
from holdfast.core.errors import Forbidden, InvalidInput
from holdfast.embeddings.store import Store
from holdfast.engine import Engine, open_engine
from holdfast.memory import Owner, Scope, agent, import_export, memory_indexer, organization, session, user
from holdfast.memory.import_export import ImportReport
from holdfast.memory.memory_indexer import Indexer
from holdfast.postgres.database import OwnerConnection as DatabaseOwner
from tests.clock import Clock
from tests.lookups import Lookups
from tests.memory.without_models import with_embedding, without_models

pytestmark = pytest.mark.req("MEM-14")

REVISION: dict[str, Any] = {
    "version": 1,
    "operation": "remember",
    "at": "2026-01-01T00:00:00Z",
    "content": "tea",
    "type": "fact",
    "importance": 1.0,
    "trust": "user",
    "metadata": {},
}
BY_PLAIN_SQL = """
insert into user_memories (agent_id, user_id, content)
select gen_random_uuid(), gen_random_uuid(), 'tea ' || n from generate_series(1, 20) n where $1::uuid is not null
"""


@pytest.fixture
def config(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The settings of an engine that finds by words alone."""
    return without_models(config, tmp_path, monkeypatch)


@pytest.fixture
async def embedding(config: Config, models: Store, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engine]:
    """An engine on the same database that has the models."""
    found = models.find("bge-small-en-v1.5-q")
    assert found is not None
    monkeypatch.setattr(memory_indexer, "FIRST", 3600)  # its own indexer stays out of the way
    async with open_engine(config=with_embedding(config, folder=found.onnx.parent.parent)) as engine:
        yield engine


async def exported(engine: Engine, whose: Owner | Scope) -> list[bytes]:
    return [line.encode() async for line in engine.memory_transfer.export(whose)]


def memories(lines: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines[1:]]


def without(names: set[str], lines: list[bytes]) -> list[dict[str, Any]]:
    return [{name: value for name, value in each.items() if name not in names} for each in memories(lines)]


async def test_everything_that_is_known_of_a_memory_comes_back(engine: Engine) -> None:
    said = datetime(2026, 3, 1, 8, tzinfo=UTC)
    ann = user("ann", agent="support")
    old = await engine.memory.remember(
        ann,
        "drinks \0 tea",
        type="preference",
        importance=0.7,
        trust="tool",
        metadata={"a": [1, "x\0"]},
        source="node 7",
        key="drink",
        conversation="web-42",
        seq=7,
        author="Ann",
        at=said,
        ttl=timedelta(days=30),
    )
    await engine.memory.edit(old.id, importance=0.9)
    new = await engine.memory.supersede(old.id, "drinks coffee")
    await engine.memory.pin(new.id)
    buried = await engine.memory.remember(ann, "hates rain")
    await engine.memory.bury(buried.id)
    before = {id: await engine.memory.get(id) for id in (old.id, new.id, buried.id)}
    histories = {id: await engine.memory.history(id) for id in before}
    lines = await exported(engine, user("ann"))

    await engine.tenants.create("other")
    other = engine.tenant("other")
    done = await other.memory_transfer.load(lines)

    assert done == ImportReport(added=3)
    assert {id: await other.memory.get(id) for id in before} == before
    assert {id: await other.memory.history(id) for id in before} == histories
    assert await exported(other, user("ann")) == lines
    assert [hit.memory.content for hit in await other.memory.search(user("ann"), "drinks")] == ["drinks coffee"]


async def test_the_same_file_twice_changes_nothing(engine: Engine) -> None:
    first = await engine.memory.remember(user("ann"), "likes tea")
    await engine.memory.supersede(first.id, "likes coffee")
    lines = await exported(engine, user("ann"))

    again = [await engine.memory_transfer.load(lines), await engine.memory_transfer.load(lines, into=user("ann"))]

    assert again == [ImportReport(folded=2)] * 2
    assert await exported(engine, user("ann")) == lines


async def test_what_was_changed_since_the_export_stays_changed(engine: Engine) -> None:
    memory = await engine.memory.remember(user("ann"), "likes tea")
    lines = await exported(engine, user("ann"))
    await engine.memory.edit(memory.id, content="likes coffee")

    done = await engine.memory_transfer.load(lines)

    assert done == ImportReport(folded=1)
    assert (await engine.memory.get(memory.id)).content == "likes coffee"


async def test_memories_of_one_become_another_s_with_ids_of_their_own(engine: Engine) -> None:
    old = await engine.memory.remember(user("ann", agent="support"), "likes tea")
    new = await engine.memory.supersede(old.id, "likes coffee")
    lines = await exported(engine, user("ann"))

    done = [await engine.memory_transfer.load(lines, into=user("bob")) for _ in range(2)]

    assert done == [ImportReport(added=2), ImportReport(folded=2)]
    copies = memories(await exported(engine, user("bob")))
    assert {each["id"] for each in copies}.isdisjoint({str(old.id), str(new.id)})
    assert [each["superseded_by"] for each in copies] == [copies[1]["id"], None]
    assert {(each["owner"]["name"], each["owner"]["agent"]) for each in copies} == {("bob", "support")}
    assert await exported(engine, user("ann")) == lines


async def test_a_user_s_memories_can_go_to_an_agent_and_to_the_organization(engine: Engine) -> None:
    await engine.memory.remember(user("ann", agent="support"), "parcels come on Friday")
    lines = await exported(engine, user("ann"))

    for owner in (agent("sales"), organization(), session("web-42")):
        await engine.memory_transfer.load(lines, into=owner)

    for owner, brought_in in ((agent("sales"), "sales"), (organization(), "support"), (session("web-42"), "support")):
        (hit,) = await engine.memory.search(owner, "parcels")
        assert (hit.memory.owner.scope, hit.memory.owner.agent) == (owner.scope, brought_in)


async def test_what_is_known_there_by_key_or_by_words_is_folded(engine: Engine) -> None:
    await engine.memory.remember(user("ann"), "likes tea", key="drink", importance=0.9)
    await engine.memory.remember(user("ann"), "hates rain")
    lines = await exported(engine, user("ann"))
    known = await engine.memory.remember(user("bob"), "likes coffee", key="drink", importance=0.5)
    await engine.memory.remember(user("bob"), "hates rain")

    done = await engine.memory_transfer.load(lines, into=user("bob"))

    assert done == ImportReport(folded=2)
    kept = await engine.memory.get(known.id)
    assert (kept.content, kept.importance) == ("likes coffee", 0.9)


async def test_the_whole_of_a_scope_comes_back_to_whose_it_was(engine: Engine) -> None:
    for name in ("ann", "bob", "eve"):
        await engine.memory.remember(user(name), f"{name} likes tea")
    await engine.memory.remember(organization(), "tea is at four")
    lines = await exported(engine, "user")
    await engine.tenants.create("other")
    other = engine.tenant("other")

    done = await other.memory_transfer.load(lines)

    assert done == ImportReport(added=3)
    for name in ("ann", "bob", "eve"):
        assert [hit.memory.content for hit in await other.memory.search(user(name), "tea")] == [f"{name} likes tea"]


async def test_what_expired_neither_leaves_nor_arrives(engine: Engine, clock: Clock) -> None:
    await engine.memory.remember(user("ann"), "is in Rome", ttl=timedelta(hours=1))
    lines = await exported(engine, user("ann"))
    await clock.advance(timedelta(hours=2))

    done = await engine.memory_transfer.load(lines, into=user("bob"))

    assert done == ImportReport(expired=1)
    assert len(await exported(engine, user("ann"))) == len(await exported(engine, user("bob"))) == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (b"{", "the text is not valid JSON"),
        ({"content": ""}, "the memory is empty"),
        ({"importance": 2}, "the importance"),
        ({"id": "x"}, "UUID"),
        ({"version": 0}, "version"),
        ({"vectors": [{"model": "", "data": "?"}]}, "the vector"),
        ({"vectors": [{"model": "", "data": "AHw="}]}, "the vector"),
        ({"vectors": [{"model": "bge-small-en-v1.5-q", "data": "AH4="}]}, "the vector"),
        ({"owner": {"scope": "all", "name": "x"}}, "owner"),
        ({"owner": {"scope": "user", "name": ""}}, "user"),
        ({"owner": {"scope": "user", "name": "ann", "agent": "x" * 3000}}, "too long"),
        ({"created_at": "0001-01-01T00:00:00Z"}, "out of range"),
        ({"expires_at": "9999-12-31T23:59:59Z"}, "out of range"),
        ({"version": 2**31 - 1}, "version"),
        ({"access_count": 2**31 - 1}, "access_count"),
        ({"version": 2, "revisions": [REVISION, REVISION]}, "two revisions have the same version"),
        ({"version": 2, "revisions": [{**REVISION, "version": 3}]}, "a revision has the version 3"),
        ({"revisions": [{**REVISION, "version": 0}]}, "version"),
        ({"revisions": [{**REVISION, "content": " "}]}, "the memory is empty"),
        ({"revisions": [{**REVISION, "content": "x" * 70_000}]}, "too large"),
        ({"revisions": [{**REVISION, "importance": 7}]}, "the importance"),
        ({"revisions": [{**REVISION, "operation": ""}]}, "operation"),
        ({"revisions": [{**REVISION, "type": "x" * 3000}]}, "too long"),
        ({"revisions": [{**REVISION, "at": "9999-12-31T23:59:59Z"}]}, "out of range"),
    ],
    ids=lambda value: str(value)[:80],
)
async def test_a_broken_line_is_named_and_what_came_before_it_stays(engine: Engine, change: Any, why: str) -> None:
    for number in range(3):
        await engine.memory.remember(user("ann"), f"tea {number}", at=datetime(2026, 1, 1 + number, tzinfo=UTC))
    lines = await exported(engine, user("ann"))
    lines[3] = change if isinstance(change, bytes) else json.dumps({**json.loads(lines[3]), **change}).encode()
    await engine.tenants.create("other")
    other = engine.tenant("other")

    with pytest.raises(InvalidInput) as refused:
        await other.memory_transfer.load(lines)

    assert refused.value.details == {"line": 4}
    assert "line 4" in refused.value.what
    assert why in refused.value.why
    assert len(await exported(other, user("ann"))) == 3


@pytest.mark.parametrize("moment", ["2026-01-02T03:04:05", "2026-01-02T23:04:05+20:00", "2026-01-02T03:04:05Z"])
async def test_a_time_of_any_zone_or_of_none_is_taken(engine: Engine, moment: str) -> None:
    await engine.memory.remember(user("ann"), "likes tea")
    header, line = await exported(engine, user("ann"))
    times = dict.fromkeys(["at", "created_at", "valid_from", "last_accessed", "buried_at"], moment)
    times["expires_at"] = times["valid_to"] = moment.replace("2026", "2126")
    given = {**json.loads(line), **times, "revisions": [{**REVISION, "at": moment}]}

    await engine.memory_transfer.load([header, json.dumps(given).encode()], into=user("bob"))

    (copy,) = memories(await exported(engine, user("bob")))
    assert {copy[name] for name in times} == {"2026-01-02T03:04:05Z", "2126-01-02T03:04:05Z"}
    assert copy["revisions"][0]["at"].startswith("2026-01-02T03:04:05")


async def test_two_lines_that_mean_the_same_memory_are_one(engine: Engine) -> None:
    await engine.memory.remember(user("ann"), "likes tea")
    anns = await exported(engine, user("ann"))
    await engine.memory_transfer.load(anns, into=user("bob"))
    bobs = await exported(engine, user("bob"))
    await engine.memory.forget(UUID(memories(bobs)[0]["id"]))
    other = {**memories(bobs)[0], "content": "likes coffee"}

    done = await engine.memory_transfer.load([*anns, json.dumps(other).encode()], into=user("bob"))

    assert done == ImportReport(added=1, folded=1)


async def test_what_arrives_in_a_session_lasts_no_longer_than_what_is_said_there(engine: Engine) -> None:
    await engine.memory.remember(user("ann"), "likes tea")

    await engine.memory_transfer.load(await exported(engine, user("ann")), into=session("web-42"))

    (hit,) = await engine.memory.search(session("web-42"), "tea")
    minutes = engine.config.memory.short_term.ttl_minutes
    assert hit.memory.expires_at is not None
    assert hit.memory.expires_at <= await engine.database.now() + timedelta(minutes=minutes)


async def test_others_get_their_turn_after_every_line(engine: Engine) -> None:
    await engine.memory.remember_many(user("ann"), [f"{number} likes tea" for number in range(100)])
    lines = await exported(engine, user("ann"))
    taken, gaps = 0, list[int]()

    def counted() -> Iterator[bytes]:
        nonlocal taken
        for line in lines:
            taken += 1
            yield line

    async def watch() -> None:
        while True:
            before = taken
            await asyncio.sleep(0)
            gaps.append(taken - before)

    watching = asyncio.create_task(watch())
    await engine.memory_transfer.load(counted(), into=user("bob"))
    watching.cancel()

    assert sum(gaps) > 90
    assert max(gaps) <= 2


async def test_a_page_is_exported_with_one_lookup_of_each_kind_of_name(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.database.run(BY_PLAIN_SQL)
    lookups = Lookups(engine, monkeypatch)

    lines = await exported(engine, "user")

    assert len(lines) == 21
    assert lookups.count == 2


async def test_what_is_written_meanwhile_leaves_an_export_whole(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_export, "PAGE", 5)
    kept = await engine.memory.remember_many(user("ann"), [f"tea {number}" for number in range(40)])
    steady = {str(memory.id) for memory in kept[::2]}
    changing = iter(kept[1::2])
    lines = list[bytes]()

    async for line in engine.memory_transfer.export(user("ann")):
        lines.append(line.encode())
        memory = next(changing, None)
        if memory is not None and len(lines) % 2:
            await engine.memory.forget(memory.id)
        elif memory is not None:
            await engine.memory.supersede(memory.id, f"coffee {len(lines)}")

    ids = [each["id"] for each in memories(lines)]
    assert len(ids) == len(set(ids))
    assert steady <= set(ids)
    await engine.tenants.create("other")
    assert (await engine.tenant("other").memory_transfer.load(lines)).added == len(ids)


@pytest.mark.parametrize("lines", [[], [b"\n"], [b'{"format": "other", "version": 1}'], [b'{"content": "x"}']])
async def test_what_is_no_export_is_refused(engine: Engine, lines: list[bytes]) -> None:
    with pytest.raises(InvalidInput, match=r"header|nothing to import"):
        await engine.memory_transfer.load(lines)


async def test_who_does_not_administer_the_tenant_learns_of_no_id_and_speaks_not_as_the_system(engine: Engine) -> None:
    anns = await engine.memory.remember(user("ann"), "likes tea")
    lines = await exported(engine, user("ann"))
    free = [lines[0], lines[1].replace(str(anns.id).encode(), str(uuid4()).encode())]
    system = [lines[0], json.dumps({**json.loads(lines[1]), "trust": "system"}).encode()]

    for given in (lines, free):
        await engine.memory_transfer.load(given, into=user("bob"), by_admin=False)
    with pytest.raises(Forbidden, match="line 2"):
        await engine.memory_transfer.load(system, into=user("bob"), by_admin=False)

    ids = {each["id"] for each in memories(await exported(engine, "user"))}
    assert ids & {json.loads(given[1])["id"] for given in (lines, free)} == {str(anns.id)}


@pytest.mark.req("EMB-03")
async def test_vectors_travel_with_their_model_and_are_used_where_it_is_configured(
    embedding: Engine, owner: DatabaseOwner
) -> None:
    first = await embedding.memory.remember(user("ann"), "prefers tea over coffee")
    lines = await exported(embedding, user("ann"))

    await embedding.memory_transfer.load(lines, into=user("bob"))

    (kept,) = memories(lines)[0]["vectors"]
    assert json.loads(lines[0])["models"] == ["bge-small-en-v1.5-q", "bge-small-zh-v1.5-q"]
    assert kept["model"] == "bge-small-en-v1.5-q"
    assert len(struct.unpack("<384e", base64.b64decode(kept["data"]))) == 384
    (anns,) = await embedding.memory.search(user("ann"), "what does she drink?", explain=True)
    (hit,) = await embedding.memory.search(user("bob"), "what does she drink?", explain=True)
    assert hit.parts is not None
    assert anns.parts is not None
    assert (hit.memory.embedded, hit.parts.vector) == (True, anns.parts.vector)
    assert hit.parts.vector != 0
    assert await owner.value("select count(distinct embedding::text) from memory_vector") == 1
    assert hit.memory.id != first.id


@pytest.mark.req("EMB-03")
async def test_a_vector_that_is_to_be_made_anew_travels_and_is_made_anew(
    embedding: Engine, owner: DatabaseOwner
) -> None:
    await embedding.memory.remember(user("ann"), "prefers tea over coffee")
    await owner.run("update memory set embedded = embedded || ' '")
    lines = await exported(embedding, user("ann"))

    await embedding.memory_transfer.load(lines, into=user("bob"))
    (hit,) = await embedding.memory.search(user("bob"), "what does she drink?", explain=True)
    waiting = await owner.value("select count(*) from memory where embedded = $1", "bge-small-en-v1.5-q ")
    await Indexer(embedding.postgres, embedding.embeddings, embedding.config.memory).catch_up()

    (kept,) = memories(lines)[0]["vectors"]
    assert kept["model"] == "bge-small-en-v1.5-q "
    assert hit.parts is not None
    assert hit.parts.vector != 0
    assert waiting == 2
    assert await owner.value("select count(*) from memory where embedded = $1", "bge-small-en-v1.5-q") == 2
    assert await owner.value("select count(*) from memory_vector where model = $1", "bge-small-en-v1.5-q") == 2


@pytest.mark.req("EMB-02", "EMB-03")
@pytest.mark.parametrize("model", ["some-other-model", "bge-small-en-v1.5-q"], ids=["another model", "another length"])
async def test_a_vector_of_no_use_here_is_made_anew_later(engine: Engine, model: str, owner: DatabaseOwner) -> None:
    await engine.memory.remember(user("ann"), "likes tea")
    header, line = await exported(engine, user("ann"))
    given = {**json.loads(line), "vectors": [{"model": model, "data": base64.b64encode(bytes(200)).decode()}]}

    await engine.memory_transfer.load([header, json.dumps(given).encode()], into=user("bob"))

    (hit,) = await engine.memory.search(user("bob"), "tea")
    assert not hit.memory.embedded
    assert await owner.value("select count(*) from memory_vector") == 0


@pytest.mark.req("EMB-03")
@pytest.mark.parametrize(("number", "kept"), [(60_000.0, 1), (6e-8, 1), (0.0, 0)], ids=["long", "short", "zero"])
async def test_a_model_s_vector_has_length_one_or_is_made_anew(
    engine: Engine, owner: DatabaseOwner, number: float, kept: int
) -> None:
    await engine.memory.remember(user("ann"), "likes tea")
    header, line = await exported(engine, user("ann"))
    data = base64.b64encode(struct.pack("<384e", *[number] * 384)).decode()
    given = {**json.loads(line), "vectors": [{"model": "bge-small-en-v1.5-q", "data": data}]}

    await engine.memory_transfer.load([header, json.dumps(given).encode()], into=user("bob"))

    (hit,) = await engine.memory.search(user("bob"), "tea")
    assert hit.memory.embedded == bool(kept)
    lengths = await owner.all("select l2_norm(embedding) as length from memory_vector")
    assert [row["length"] for row in lengths] == pytest.approx([1.0] * kept, abs=0.001)


async def test_a_client_s_own_vector_comes_back(engine: Engine, owner: DatabaseOwner) -> None:
    await engine.memory.remember(user("ann"), "likes tea")
    header, line = await exported(engine, user("ann"))
    own = {"model": "", "data": base64.b64encode(struct.pack("<3e", 0.5, 0.25, -1)).decode()}

    await engine.memory_transfer.load(
        [header, json.dumps({**json.loads(line), "vectors": [own]}).encode()], into=user("bob")
    )

    assert memories(await exported(engine, user("bob")))[0]["vectors"] == [own]
    assert await owner.value("select embedding::text from memory_vector") == "[0.5,0.25,-1]"


async def test_however_many_there_are_only_a_page_of_them_is_held_at_a_time(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_export, "PAGE", 100)
    few, many = 200, 1200
    peaks = dict[int, int]()
    for count in (few, many):
        await engine.memory.remember_many(
            user(f"ann {count}"), [f"{number} {'likes tea ' * 40}" for number in range(count)]
        )

    async def passing(count: int) -> AsyncIterator[bytes]:
        async for line in engine.memory_transfer.export(user(f"ann {count}")):
            yield line.encode()

    await engine.memory_transfer.load(passing(few), into=user("warm"))
    for count in (few, many):
        tracemalloc.start()
        done = await engine.memory_transfer.load(passing(count), into=user(f"bob {count}"))
        peaks[count] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert done == ImportReport(added=count)

    assert peaks[many] < 1.5 * peaks[few]
