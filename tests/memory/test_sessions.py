"""Session memories belong to a conversation, and go with it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import uuid4

import pytest

from holdfast.core.errors import NotFound
from holdfast.engine import Engine
from holdfast.memory import session
from holdfast.postgres.database import OwnerConnection as DatabaseOwner
from holdfast.postgres.database import open_owner
from holdfast.postgres.migrate import Schema, migrate
from holdfast.postgres.options import Options
from tests.memory.conftest import OpenWith

pytestmark = [pytest.mark.req("MEM-02"), pytest.mark.usefixtures("no_models")]

SECRET = "ann's code is 4711"
KEPT = """
select (select count(*) from memory where owner = $1) + (select count(*) from memory_vector where owner = $1)
  + (select count(*) from memory_term where owner = $1)
  + (select count(*) from memory_revision where memory_id = $2) as rows,
  (select count(*) from memory_tombstone where memory_id = $2) as tombstones
"""
INSERT = "insert into session_memories (session_id, agent_id, content) select $2, $2, $3 where $1::uuid is not null"


@pytest.mark.req("STM-05")
async def test_removing_a_conversation_deletes_its_memories_for_good(engine: Engine, owner: DatabaseOwner) -> None:
    anns = await engine.conversations.create(user="ann", session_id="S")
    memory = await engine.memory.remember(session("S"), SECRET, key="code")
    memory = await engine.memory.edit(memory.id, importance=0.5)
    vector = "update session_memories set embedding = $3 where id = $2 and $1::uuid is not null"
    await engine.database.run(vector, memory.id, [0.5] * 384)
    before = await owner.one(KEPT, anns.id, memory.id)

    await engine.conversations.remove(anns.id)
    bobs = await engine.conversations.create(user="bob", session_id="S")

    after = await owner.one(KEPT, anns.id, memory.id)
    assert before is not None
    assert after is not None
    assert before["rows"] > 4
    assert (after["rows"], after["tombstones"]) == (0, 1)
    assert await engine.memory.list(session("S", user="bob"), also_past=True) == []
    with pytest.raises(NotFound):
        await engine.memory.edit(memory.id, ttl=timedelta(days=1))
    again = await engine.memory.remember(session("S"), SECRET, key="code")
    assert (again.owner.conversation, again.owner.user) == (bobs.id, None)


async def test_ending_a_session_expires_its_memories_and_keeps_them_for_its_user(engine: Engine) -> None:
    await engine.conversations.create(user="ann", session_id="S")
    await engine.memory.remember(session("S"), SECRET)

    await engine.sessions.end("S", user="ann")

    assert await engine.memory.list(session("S")) == []
    assert [each.content for each in await engine.memory.list(session("S"), also_past=True)] == [SECRET]


@pytest.mark.req("SAFE-02")
async def test_users_remember_apart_in_sessions_of_one_name(engine: Engine) -> None:
    for user in ("ann", "bob"):
        await engine.conversations.create(user=user, session_id="S")
        memory = await engine.memory.remember(session("S", user=user), f"{user} likes tea")
        await engine.memory.supersede(memory.id, f"{user} likes coffee")

    for user in ("ann", "bob"):
        hits = await engine.memory.context("coffee", session="S", user=user)
        assert [hit.memory.content for hit in hits] == [f"{user} likes coffee"]
    assert await engine.memory.context("coffee", session="S", user="cid") == []


async def test_a_session_that_remembers_something_first_becomes_a_conversation(engine: Engine) -> None:
    nobodys = await engine.memory.remember(session("new"), "likes tea")
    anns = await engine.memory.remember(session("hers", user="ann"), "likes tea")
    begun = [await engine.conversations.find(session_id=name) for name in ("new", "hers")]

    assert [talk and (talk.id, talk.user) for talk in begun] == [
        (nobodys.owner.conversation, None),
        (anns.owner.conversation, "ann"),
    ]
    assert [hit.memory.id for hit in await engine.memory.context("tea", session="new", user="ann")] == [nobodys.id]
    talk = await engine.conversations.ensure("new", user="ann")
    assert talk.id == nobodys.owner.conversation


async def test_plain_sql_remembers_in_the_conversation_of_its_session(engine: Engine) -> None:
    known, unknown = uuid4(), uuid4()
    talk = await engine.conversations.create(user="ann", session_id=str(known))
    await engine.conversations.create(user="ann", session_id="by name")
    named = await engine.memory.remember(session("by name"), "likes tea")

    for each in (known, unknown):
        await engine.database.run(INSERT, each, SECRET)
    rows = await engine.database.all("select session_id from session_memories where $1::uuid is not null order by 1")
    shown = await engine.database.value(
        "select session_id from session_memories where $1::uuid is not null and id = $2", named.id
    )
    await engine.database.run(INSERT, shown, "and coffee")

    begun = await engine.conversations.find(session_id=str(unknown))
    assert begun is not None
    assert {row["session_id"] for row in rows} == {known, unknown, shown}
    assert len(await engine.memory.list(session("by name"))) == 2
    assert [each.content for each in await engine.memory.list(session(str(known), user="ann"))] == [SECRET]
    for id in (talk.id, begun.id):
        await engine.conversations.remove(id)
    assert await engine.database.value("select count(*) from session_memories where $1::uuid is not null") == 2


@pytest.mark.req("STM-01")
async def test_plain_sql_lives_as_long_as_the_settings_say(open_with: OpenWith) -> None:
    async with open_with(short_term={"ttl_minutes": 7}) as engine:
        await engine.database.run(INSERT, uuid4(), SECRET)

        lifetime = await engine.database.value(
            "select expires_at - created_at from session_memories where $1::uuid is not null"
        )

    assert lifetime == timedelta(minutes=7)


@pytest.mark.req("STM-05")
async def test_what_is_remembered_while_a_conversation_is_removed_is_gone_or_refused(
    engine: Engine, owner: DatabaseOwner
) -> None:
    talk = await engine.conversations.create(user="ann", session_id="S")
    here = session("S", conversation=talk.id)
    await engine.memory.remember(here, "known")

    async with engine.transaction() as tx:
        await engine.conversations.remove(talk.id, tx=tx)
        late = asyncio.create_task(engine.memory.remember(here, SECRET))
        waiting = (
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        )
        async with asyncio.timeout(30):
            while not await owner.value(waiting):
                assert not late.done()
    with pytest.raises(NotFound):
        await late

    assert await engine.database.value("select count(*) from memory where $1::uuid is not null") == 0


async def test_a_migration_gives_session_memories_to_their_conversations(old: DatabaseOwner) -> None:
    tenant = await old.value("select id from tenant")
    owners = {name: uuid4() for name in ("kept", "removed", "alone")}
    talk = uuid4()
    for name, id in owners.items():
        await old.run("insert into identity values ($1, 'session', $2, $3)", tenant, name, id)
        expiry = "now() - interval '1 minute'" if name == "removed" else "now() + interval '1 hour'"
        columns = "tenant_id, scope, owner, expires_at, digest, content"
        values = f"$1, 'session', $2, {expiry}, $2, $3"
        await old.run(f"insert into memory ({columns}) values ({values})", tenant, id, name)
        await old.run("insert into memory_term values ($1, 'session', $2, 1, $2)", tenant, id)
    await old.run(
        "insert into conversation (tenant_id, id, session_id, app_name) values ($1, $2, 'kept', 'default')",
        tenant,
        talk,
    )
    columns = "tenant_id, id, session_id, app_name, user_id, user_name"
    qualified = f"insert into conversation ({columns}) values ($1, $2, $3, 'shop', $2, 'bo b')"
    await old.run(qualified, tenant, uuid4(), "adk://shop/bo%20b/a/b")

    await migrate(old)

    rows = await old.all(
        "select m.content, m.owner, c.session_id, c.id from memory m join conversation c on c.id = m.owner order by 1"
    )
    assert [(row["content"], row["session_id"]) for row in rows] == [("alone", "alone"), ("kept", "kept")]
    assert rows[1]["owner"] == talk
    assert await old.value("select count(*) from memory") == await old.value("select count(*) from memory_term") == 2
    assert await old.value("select count(*) from memory_term t join conversation c on c.id = t.owner") == 2
    assert await old.value("select session_name from conversation where session_id ^@ 'adk:'") == "a/b"
    assert await old.value("select count(*) from conversation c join node n on n.id = c.id") == 2


@pytest.fixture
async def old(empty_database_url: str) -> AsyncIterator[DatabaseOwner]:
    """A database as it was before session memories belonged to conversations."""
    schema = Schema.packaged()
    before = Schema(tuple(step for step in schema.migrations if step.name < "0012"), ())
    async with open_owner(empty_database_url, Options()) as owner:
        await migrate(owner, before)
        yield owner
