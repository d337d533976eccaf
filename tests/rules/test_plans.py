import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import uuid4

import pytest

from holdfast.postgres.database import Postgres
from holdfast.postgres.embedded import EmbeddedServer
from holdfast.postgres.options import Options
from holdfast.postgres.sql import statements
from tests.conftest import drop_database, make_template
from tests.rules.plans import ENOUGH, PACKAGE, RUN_BY, WITHOUT_LOOKUP, tenant_7, unindexed, unplanned
from tests.rules.tree import ROOT, source

# The key stays unique, for a statement names it in its `on conflict`, and no longer leads with the tenant.
MOVED = """
alter table identity drop constraint identity_tenant_id_kind_id_key, add constraint moved unique (id, kind, tenant_id)
"""
READ_RECORDS = [
    *(f"bus/sql/{name}" for name in ("fetch", "fetch_one", "lag", "newest", "offsets_at", "topics")),
    *(
        "bus/kafka/sql/is_ours",
        "bus/kafka/sql/time_at",
        "bus/sql/group_gauges",
        "bus/sql/topic_gauges",
        "bus/kafka/sql/unsent",
    ),
]


@pytest.fixture(scope="module")
def template(server: EmbeddedServer) -> Iterator[str]:
    """A database with enough rows that a missing index shows; to fill it takes long, to copy it does not."""
    asyncio.run(make_template(server, "filled", ENOUGH))
    yield "filled"
    asyncio.run(drop_database(server, "filled"))


@pytest.fixture
async def postgres(database_url: str) -> AsyncIterator[Postgres]:
    """The filled database, without an engine: the jobs of one would change its rows, and with them the plans."""
    postgres = Postgres(database_url, Options(), owner_url=database_url)
    yield postgres
    await postgres.close()


@pytest.mark.req("ENG-04")
async def test_hot_statements_keep_their_index_under_the_policies(postgres: Postgres) -> None:
    assert await unindexed(postgres) == []


@pytest.mark.req("ENG-04")
async def test_the_plans_are_those_of_a_role_that_the_policies_hold(postgres: Postgres) -> None:
    statement = statements("holdfast.access.identities")("identity_name")

    rows: list[Any] = await tenant_7(postgres).all(f"explain (verbose) {statement}", "user", uuid4())

    assert "current_setting('holdfast.tenant'" in "\n".join(row[0] for row in rows)


@pytest.mark.parametrize(
    ("lost", "missed_by"),
    [
        (MOVED, ["access/sql/identity_name", "access/sql/identity_names"]),
        ("drop index api_key_by_tenant", ["access/sql/keys_of_tenant"]),
        ("drop index api_key_by_secret", ["access/sql/any_key", "access/sql/keys_of_other_secrets"]),
        ("drop index api_key_by_expiry", ["access/sql/forget_expired"]),
        ("drop index dead_letter_redriven", ["bus/sql/redriven"]),
        ("alter table record drop constraint record_pkey", READ_RECORDS),
    ],
)
async def test_a_lost_index_is_missed(postgres: Postgres, lost: str, missed_by: list[str]) -> None:
    async with postgres.owner() as owner:
        await owner.script(lost)

    found = await unindexed(postgres)

    assert [violation.partition(".sql:")[0] for violation in found] == [PACKAGE + name for name in missed_by]


def test_of_every_statement_somebody_said_how_it_finds_its_rows() -> None:
    assert unplanned(source(ROOT, ".sql")) == []


@pytest.mark.parametrize(
    "name", ["access/sql/planted.sql", "memory/knowledge/sql/planted.sql", "memory/sql/any_key.sql"]
)
def test_a_statement_that_nobody_thought_of_is_found(name: str) -> None:
    found = unplanned([(PACKAGE + name, "select from node")])

    assert len(found) == 1


@pytest.mark.parametrize(
    "text",
    [
        "select holdfast.append($1)",
        "insert into node (tenant_id) values ($1) on conflict (tenant_id) do update set place = 1",
        "with given as (select $1 as id) insert into node (tenant_id, id) select $1, id from given",
    ],
)
def test_a_statement_that_reads_no_table_needs_no_plan_and_has_none(text: str) -> None:
    unlisted, listed = PACKAGE + "access/sql/planted.sql", PACKAGE + "access/sql/identity_name.sql"

    assert unplanned([(unlisted, text)]) == []
    assert len(unplanned([(listed, text)])) == 1


def test_no_listed_statement_is_gone_and_each_has_one_role() -> None:
    written = {name.removeprefix(PACKAGE) for name, _ in source(ROOT, ".sql")}

    listed = [name for lists in (RUN_BY, WITHOUT_LOOKUP) for statements in lists.values() for name in statements]

    assert set(listed) <= written
    assert sorted(listed) == sorted(set(listed))
