import asyncio
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.access import identities
from holdfast.access.identities import Identities
from holdfast.core.config import load_config
from holdfast.core.errors import NotFound, TooLarge
from holdfast.core.ids import TenantId, identity_id
from holdfast.core.names import MAX_NAME_BYTES
from holdfast.engine import Engine, open_engine
from holdfast.memory import user
from holdfast.memory.memory_indexer import Indexer
from tests.lookups import Lookups

pytestmark = pytest.mark.req("ENG-09")

NAMES = [
    "",
    "ann",
    "ANN",
    "Ann ",
    "ünï 😀",
    "nul\0nul",
    "half \ud83d",
    "\U0010fffe0000",
    "quote ' \" \\ %s $1",
    "x" * MAX_NAME_BYTES,
    "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "6BA7B810-9DAD-11D1-80B4-00C04FD430C8",
    "{6ba7b810-9dad-11d1-80b4-00c04fd430c8}",
]


BY_PLAIN_SQL = """
insert into user_memories (agent_id, user_id, content)
select gen_random_uuid(), $2, 'tea ' || n from generate_series(1, 10) n where $1::uuid is not null
"""
TENANTS = [TenantId(uuid4()), TenantId(uuid4())]


async def test_every_name_has_one_id_and_comes_back_from_it(engine: Engine) -> None:
    ids = [await engine.identities.id("user", name) for name in NAMES]

    again = Identities(engine.database)
    assert [await again.id("user", name) for name in NAMES] == ids
    assert [await again.name("user", id) for id in ids] == NAMES
    assert len(set(ids)) == len(NAMES)


@given(st.text(max_size=200))
def test_no_name_shares_its_id_with_another_spelling(name: str) -> None:
    spellings = {name, name.upper(), name + " ", name + "\0"}

    ids = {identity_id(tenant, "user", spelt) for tenant in TENANTS for spelt in spellings}

    assert len(ids) == len(TENANTS) * len(spellings)


async def test_a_uuid_stands_for_itself_and_an_id_given_back_as_a_name_too(engine: Engine) -> None:
    given_id = uuid4()
    anns = await engine.identities.id("user", "ann")

    assert await engine.identities.id("user", str(given_id)) == given_id
    assert await engine.identities.id("user", str(anns)) == anns
    assert await engine.identities.name("user", anns) == "ann"


@pytest.mark.req("SAFE-02")
async def test_a_name_means_someone_else_to_another_tenant_and_as_another_kind(engine: Engine) -> None:
    await engine.tenants.create("acme")
    acme = engine.tenant("acme")

    ids = [
        await engine.identities.id("user", "ann"),
        await engine.identities.id("agent", "ann"),
        await acme.identities.id("user", "ann"),
    ]

    assert len(set(ids)) == 3
    for stranger, id in ((acme, ids[0]), (engine, ids[1]), (engine, ids[2])):
        with pytest.raises(NotFound):
            await stranger.identities.name("user", id)


async def test_another_engine_on_the_same_database_gives_the_same_ids(engine: Engine, tmp_path: Path) -> None:
    ids = [await engine.identities.id("session", name) for name in NAMES]
    config = load_config({"database.url": engine.place.owner_url, "data": tmp_path / "other"}, environ={}, cwd=tmp_path)

    async with open_engine(config=config) as other:
        assert [await other.identities.id("session", name) for name in NAMES] == ids
        assert [await other.identities.name("session", id) for id in ids] == NAMES


async def test_many_who_ask_for_a_new_name_at_once_get_one_id_and_one_row(engine: Engine) -> None:
    ids = await asyncio.gather(*(Identities(engine.database).id("user", "ann") for _ in range(30)))

    assert len(set(ids)) == 1
    assert await engine.database.value("select count(*) from identity where tenant_id = $1") == 1


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize("name", ["x" * (MAX_NAME_BYTES + 1), "ü" * 1001, "\0" * 300, "abc" * 3500])
async def test_a_name_too_long_for_a_key_is_refused_and_not_stored(engine: Engine, name: str) -> None:
    with pytest.raises(TooLarge, match=f"the limit is {MAX_NAME_BYTES}"):
        await engine.identities.id("user", name)

    assert await engine.database.value("select count(*) from identity where tenant_id = $1") == 0


async def test_an_id_that_nobody_has_is_not_found(engine: Engine) -> None:
    with pytest.raises(NotFound, match="no user has the id"):
        await engine.identities.name("user", UUID(int=7))


async def test_a_name_goes_before_its_uuid_whichever_came_first(engine: Engine) -> None:
    zoe = identity_id(await engine.database.tenant(), "user", "zoe")
    await engine.identities.id("user", str(zoe))

    assert await engine.identities.id("user", "zoe") == zoe

    assert await engine.identities.name("user", zoe) == "zoe"
    await Identities(engine.database).id("user", str(zoe))
    assert await engine.identities.name("user", zoe) == "zoe"


async def test_the_names_of_many_are_looked_up_in_one_statement_and_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {await engine.identities.id("user", name): name for name in ("ann", "nul\0nul", "half \ud83d")}
    nameless = {id: str(id) for id in (uuid4() for _ in range(20))}
    other = await engine.identities.id("agent", "support")
    lookups = Lookups(engine, monkeypatch)

    found = [await engine.identities.names("user", [*named, *nameless, other]) for _ in range(3)]

    assert found == [{**named, **nameless, other: str(other)}] * 3
    assert lookups.count == 1


@pytest.mark.parametrize("before", ["nobody knew it", "it was given back as a name"])
async def test_a_uuid_that_gets_a_name_later_has_it_at_once(engine: Engine, before: str) -> None:
    zoe = identity_id(await engine.database.tenant(), "user", "zoe")
    if before == "it was given back as a name":
        await engine.identities.id("user", str(zoe))
    was = await engine.identities.names("user", [zoe])

    await engine.identities.id("user", "zoe")

    assert (was, await engine.identities.names("user", [zoe])) == ({zoe: str(zoe)}, {zoe: "zoe"})


async def test_a_name_given_in_a_transaction_is_seen_there_and_by_others_when_it_commits(engine: Engine) -> None:
    zoe = identity_id(await engine.database.tenant(), "user", "zoe")
    await engine.identities.names("user", [zoe])

    async with engine.database.transaction() as tx:
        await engine.identities.id("user", "zoe", tx=tx)
        outside = await Identities(engine.database).names("user", [zoe])
        inside = await engine.identities.names("user", [zoe], tx=tx)

    assert (outside, inside) == ({zoe: str(zoe)}, {zoe: "zoe"})
    assert await engine.identities.names("user", [zoe]) == {zoe: "zoe"}


async def test_a_name_that_another_engine_gives_is_seen_after_a_while(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(identities, "monotonic", lambda: now)
    zoe = identity_id(await engine.database.tenant(), "user", "zoe")
    await engine.identities.names("user", [zoe])
    await Identities(engine.database).id("user", "zoe")

    soon = await engine.identities.names("user", [zoe])
    now += identities.NAMELESS
    later = await engine.identities.names("user", [zoe])

    assert (soon, later) == ({zoe: str(zoe)}, {zoe: "zoe"})


async def test_only_so_many_are_remembered(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identities, "REMEMBERED", 10)
    strangers = [uuid4() for _ in range(30)]
    for id in strangers:
        await engine.identities.names("user", [id])
    lookups = Lookups(engine, monkeypatch)

    await engine.identities.names("user", strangers[-10:])
    kept = lookups.count
    await engine.identities.names("user", strangers[:1])

    assert (kept, lookups.count) == (0, 1)


@pytest.mark.req("MEM-03")
async def test_hits_that_came_by_plain_sql_cost_a_search_one_lookup_of_each_kind_and_the_next_none(
    words_only: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await words_only.identities.id("user", "ann")
    await words_only.database.run(BY_PLAIN_SQL, ann)
    await Indexer(words_only.postgres, words_only.embeddings, words_only.config.memory).catch_up()
    lookups = Lookups(words_only, monkeypatch)

    hits = await words_only.memory.search(user("ann"), "tea")
    first = lookups.count
    await words_only.memory.search(user("ann"), "tea")

    assert len(hits) == 10
    assert len({hit.memory.owner.agent for hit in hits}) == 10
    assert {hit.memory.owner.name for hit in hits} == {"ann"}
    assert (first, lookups.count) == (2, 2)
