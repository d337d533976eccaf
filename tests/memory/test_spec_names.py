import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from holdfast.core.errors import InvalidInput
from holdfast.embeddings.store import Store
from holdfast.engine import Engine
from holdfast.memory import Owner, agent, organization, session, user
from holdfast.postgres.database import OwnerConnection as DatabaseOwner
from tests.clock import Clock
from tests.embeddings.models import models
from tests.logins import Login, tenant_login

__all__ = ["models"]

pytestmark = pytest.mark.req("MEM-01")

COLUMNS = {
    "session_memories": "id uuid, session_id uuid, agent_id uuid, user_id uuid, content text, embedding vector(384), "
    "importance_score double precision, created_at timestamp with time zone, expires_at timestamp with time zone, "
    "metadata jsonb",
    "user_memories": "id uuid, agent_id uuid, user_id uuid, content text, embedding vector(384), "
    "memory_type character varying, importance_score double precision, access_count integer, "
    "created_at timestamp with time zone, last_accessed timestamp with time zone, metadata jsonb",
    "agent_memories": "id uuid, agent_id uuid, content text, embedding vector(384), memory_type character varying, "
    "created_at timestamp with time zone, metadata jsonb",
    "organizational_memories": "id uuid, agent_id uuid, source character varying, content text, embedding vector(384), "
    "chunk_index integer, document_id uuid, created_at timestamp with time zone, metadata jsonb",
}
A, S, U, D = (UUID(int=n) for n in (1, 2, 3, 4))
INSERTS: dict[str, tuple[str, tuple[object, ...], Owner]] = {
    "session_memories": (
        "insert into session_memories (session_id, agent_id, user_id, content, metadata) values (%s, %s, %s, %s, %s)",
        (S, A, U, "asked about opening hours", '{"topic": "debug", "turn": 5}'),
        session(str(S)),
    ),
    "user_memories": (
        "insert into user_memories (agent_id, user_id, content, memory_type) values (%s, %s, %s, 'preference')",
        (A, U, "prefers Java over Python"),
        user(str(U)),
    ),
    "agent_memories": (
        "insert into agent_memories (agent_id, content, memory_type) values (%s, %s, 'persona')",
        (A, "speaks like a pirate"),
        agent(str(A)),
    ),
    "organizational_memories": (
        "insert into organizational_memories (agent_id, source, content, document_id) values (%s, 'handbook', %s, %s)",
        (A, "vacation is thirty days a year", D),
        organization(),
    ),
}
SPEC_SELECT = """
SELECT id, content, embedding <=> %s AS distance
FROM session_memories
WHERE session_id = %s AND expires_at > NOW()
ORDER BY embedding <=> %s
LIMIT %s
"""
TABLES = ("memory", "memory_vector", "memory_term", "memory_revision")


def vector(*numbers: float) -> str:
    """A vector as a client of pgvector writes it."""
    return str([*numbers, *[0.0] * (384 - len(numbers))])


@pytest.fixture
async def ann(engine: Engine) -> AsyncIterator[Login]:
    """The tenant ann, with a login of its own."""
    async with tenant_login(engine, "ann") as login:
        yield login


@pytest.fixture
async def bob(engine: Engine) -> AsyncIterator[Login]:
    """The tenant bob."""
    async with tenant_login(engine, "bob") as login:
        yield login


def run(login: Login, statement: str, *args: object) -> list[tuple[Any, ...]]:
    """Run a statement on the login and commit; its rows."""
    connection = login.at_hand()
    with connection.transaction():
        cursor = connection.execute(statement.encode(), args)
        return cursor.fetchall() if cursor.description else []


async def embedded(login: Login, whose: Owner, query: str) -> str:
    """The best answer to a question, as soon as it can be found by meaning."""
    async with asyncio.timeout(30):
        while True:
            hits = await login.engine.memory.search(whose, query)
            if hits and all(hit.memory.embedded for hit in hits):
                return hits[0].memory.content


@pytest.mark.parametrize("name", COLUMNS)
async def test_the_columns_are_those_of_the_spec_but_that_times_have_a_zone_and_texts_no_limit(
    ann: Login, name: str
) -> None:
    rows = run(
        ann,
        "select attname || ' ' || format_type(atttypid, atttypmod) from pg_attribute where attrelid = %s::regclass "
        "order by attnum",
        name,
    )

    assert ", ".join(row[0] for row in rows) == COLUMNS[name]


@pytest.mark.parametrize("name", INSERTS)
async def test_what_plain_sql_inserts_is_found_by_meaning_soon_after(ann: Login, models: Store, name: str) -> None:
    statement, values, whose = INSERTS[name]
    run(ann, statement, *values)

    found = await embedded(ann, whose, "work, habits, times and holidays")
    [[content, own]] = run(ann, f"select content, embedding from {name}")

    assert found == content
    assert content in values
    assert own is not None  # ours, where the client gave none


async def test_the_specs_own_search_runs_as_it_stands(ann: Login) -> None:
    near, far = uuid4(), uuid4()
    insert = "insert into session_memories (id, session_id, agent_id, content, embedding) values (%s, %s, %s, %s, %s)"
    run(ann, insert, near, S, A, "near", vector(1.0, 0.1))
    run(ann, insert, far, S, A, "far", vector(0.0, 1.0))
    run(ann, insert, uuid4(), U, A, "of another session", vector(1.0))

    rows = run(ann, SPEC_SELECT, vector(1.0), S, vector(1.0), 10)

    assert [row[:2] for row in rows] == [(near, "near"), (far, "far")]
    assert rows[0][2] == pytest.approx(0.005, abs=1e-3)
    assert run(ann, SPEC_SELECT, vector(1.0), S, vector(1.0), 1) == rows[:1]


async def test_the_application_runs_the_same_statements(engine: Engine) -> None:
    insert = """
    insert into session_memories (session_id, agent_id, content, embedding)
    select $2, $3, $4, $5 where $1::uuid is not null
    """
    search = """
    select content from session_memories where session_id = $2 and $1::uuid is not null
    order by embedding <=> $3 limit 1
    """

    await engine.database.run(insert, S, A, "far", [1.0, -1.0] * 192)
    await engine.database.run(insert, S, A, "near", [1.0] * 384)

    assert await engine.database.value(search, S, [1.0] * 384) == "near"


async def test_defaults_are_the_specs(ann: Login) -> None:
    run(ann, "insert into session_memories (session_id, agent_id, content) values (%s, %s, 'hello')", S, A)
    run(ann, "insert into user_memories (user_id, agent_id, content) values (%s, %s, 'hello')", U, A)

    short = run(ann, "select importance_score, expires_at - created_at, metadata from session_memories")
    long = run(ann, "select importance_score, access_count, last_accessed = created_at, memory_type from user_memories")

    assert short == [(1.0, timedelta(hours=1), {})]
    assert long == [(1.0, 0, True, "fact")]


async def test_what_is_inserted_is_returned(ann: Login) -> None:
    statement = (
        "insert into session_memories (session_id, agent_id, content, expires_at) values (%s, %s, 'hello', null)"
    )

    [row] = run(ann, f"{statement} returning id, content, importance_score, expires_at > now(), session_id", S, A)

    assert row[1:] == ("hello", 1.0, True, S)
    assert run(ann, "select id from session_memories") == [(row[0],)]


@pytest.mark.req("MEM-02")
async def test_an_expired_memory_is_seen_by_nobody_even_before_it_is_deleted(
    ann: Login, clock: Clock, owner: DatabaseOwner
) -> None:
    run(ann, "insert into session_memories (session_id, agent_id, content) values (%s, %s, 'asked for tea')", S, A)
    seen = run(ann, "select content from session_memories")
    await clock.advance(timedelta(minutes=60))

    later = psycopg.connect(ann.url)
    rows = later.execute("select content from session_memories").fetchall()
    later.close()

    assert seen == [("asked for tea",)]
    assert rows == []
    assert await ann.engine.memory.search(session(str(S)), "tea") == []
    assert await owner.value("select count(*) from memory") == 1


async def test_what_was_superseded_or_buried_is_not_shown(ann: Login) -> None:
    memory = ann.engine.memory
    old = await memory.remember(user(str(U)), "lives in Oslo")
    buried = await memory.remember(user(str(U)), "lives alone")
    await memory.supersede(old.id, "lives in Rome")
    await memory.bury(buried.id)

    assert run(ann, "select content from user_memories") == [("lives in Rome",)]


async def test_an_update_is_kept_as_a_revision_and_found_by_its_new_words(ann: Login, models: Store) -> None:
    run(ann, "insert into user_memories (user_id, agent_id, content) values (%s, %s, 'has a dog')", U, A)
    await embedded(ann, user(str(U)), "pets")

    run(ann, "update user_memories set content = 'has a cat', importance_score = 0.7, access_count = access_count + 1")

    assert await embedded(ann, user(str(U)), "cat") == "has a cat"
    [hit] = await ann.engine.memory.search(user(str(U)), "cat", explain=True)
    [dog] = await ann.engine.memory.search(user(str(U)), "dog", explain=True)
    history = await ann.engine.memory.history(hit.memory.id)
    assert (hit.memory.importance, hit.memory.version) == (0.7, 2)
    assert hit.memory.access_count >= 1
    assert [(each.content, each.operation) for each in history] == [("has a cat", "edit"), ("has a dog", "remember")]
    assert hit.parts is not None
    assert dog.parts is not None
    assert hit.parts.words > dog.parts.words == 0


async def test_counting_a_use_makes_no_revision(ann: Login) -> None:
    run(ann, "insert into user_memories (user_id, agent_id, content) values (%s, %s, 'has a dog')", U, A)

    run(ann, "update user_memories set access_count = access_count + 1, last_accessed = now()")

    [row] = run(ann, "select id, access_count from user_memories")
    assert row[1] == 1
    assert (await ann.engine.memory.get(row[0])).version == 1


async def test_a_clients_vector_is_changed_and_taken_away_like_any_column(ann: Login) -> None:
    run(
        ann,
        "insert into agent_memories (agent_id, content, embedding) values (%s, 'hello', %s)",
        A,
        vector(0.5),
    )
    steps = [vector(0.25), None]

    shown: list[object] = []
    for step in steps:
        run(ann, "update agent_memories set embedding = %s", step)
        shown += run(ann, "select embedding::text from agent_memories")

    assert str(shown[0]).startswith("('[0.25,0,0,")
    assert shown[1] == (None,) or "0.25" not in str(shown[1])


async def test_an_update_leaves_what_it_does_not_name_to_the_letter(ann: Login) -> None:
    odd = await ann.engine.memory.remember(user(str(U)), "nul \0 and \U0010fffe", metadata={"x": "\0"}, importance=0.3)

    run(ann, "update user_memories set access_count = 7, importance_score = 0.4")

    memory = await ann.engine.memory.get(odd.id)
    assert (memory.content, memory.metadata) == ("nul \0 and \U0010fffe", {"x": "\0"})
    assert (memory.access_count, memory.importance) == (7, 0.4)


async def test_a_delete_leaves_a_tombstone_and_nothing_else(ann: Login, owner: DatabaseOwner, models: Store) -> None:
    for statement, values, whose in INSERTS.values():
        run(ann, statement, *values)
        await embedded(ann, whose, "anything")
    run(ann, "update user_memories set content = 'prefers Rust'")

    for name in INSERTS:
        run(ann, f"delete from {name}")

    assert [await owner.value(f"select count(*) from {table}") for table in TABLES] == [0, 0, 0, 0]
    reasons = await owner.all("select reason, scope from memory_tombstone")
    assert {row["reason"] for row in reasons} == {"forgotten"}
    assert len(reasons) == 4


@pytest.mark.parametrize(
    ("columns", "values", "why"),
    [
        ("session_id, content", f"'{S}', 'x'", 'null value in column "agent_id" of "session_memories"'),
        ("agent_id, content", f"'{A}', 'x'", 'null value in column "session_id"'),
        ("session_id, agent_id", f"'{S}', '{A}'", 'null value in column "content"'),
        ("session_id, agent_id, content", f"'{S}', '{A}', '  '", "the memory is empty"),
        ("session_id, agent_id, content", f"'{S}', '{A}', repeat('x', 65537)", "too large"),
        ("session_id, agent_id, content, importance_score", f"'{S}', '{A}', 'x', 7", "importance 7 is invalid"),
        ("session_id, agent_id, content, metadata", f"'{S}', '{A}', 'x', '[1]'", "metadata is not an object"),
        ("session_id, agent_id, content, embedding", f"'{S}', '{A}', 'x', '[1,2]'", "expected 384 dimensions"),
    ],
)
async def test_what_cannot_be_remembered_is_refused_with_the_reason(
    ann: Login, owner: DatabaseOwner, columns: str, values: str, why: str
) -> None:
    with pytest.raises(psycopg.Error, match=why):
        run(ann, f"insert into session_memories ({columns}) values ({values})")

    assert await owner.value("select count(*) from memory") == 0


async def test_an_id_is_taken_once_and_whose_it_is_cannot_be_changed(ann: Login) -> None:
    insert = "insert into user_memories (id, user_id, agent_id, content) values (%s, %s, %s, 'x')"
    run(ann, insert, D, U, A)

    with pytest.raises(psycopg.errors.UniqueViolation, match="already"):
        run(ann, insert, D, S, A)
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="cannot be changed"):
        run(ann, "update user_memories set user_id = %s", S)


async def test_tenants_see_and_touch_only_their_own(ann: Login, bob: Login) -> None:
    for login, content in ((ann, "of ann"), (bob, "of bob")):
        run(login, "insert into organizational_memories (agent_id, content) values (%s, %s)", A, content)
    other = await ann.engine.database.tenant()
    run(bob, "select set_config('holdfast.tenant', %s, false)", str(other))

    run(bob, "update organizational_memories set content = 'changed by bob'")
    shown = run(bob, "select content from organizational_memories")
    run(bob, "delete from organizational_memories")

    assert shown == [("changed by bob",)]
    assert run(ann, "select content from organizational_memories") == [("of ann",)]


@pytest.mark.req("MEM-01", "ENG-08")
@pytest.mark.parametrize("moment", ["4000-01-01 BC", "-infinity", "10000-01-01", "infinity"])
async def test_a_time_that_nobody_could_read_again_is_refused(engine: Engine, moment: str) -> None:
    insert = """
        insert into user_memories (user_id, agent_id, content, created_at)
        select $2, $2, 'x', $3::text::timestamptz where $1::uuid is not null
    """
    with pytest.raises(InvalidInput, match="a time is out of range"):
        await engine.database.run(insert, uuid4(), moment)
