from dataclasses import dataclass
from uuid import uuid4

import pytest

from holdfast.core.errors import (
    AlreadyExists,
    Broken,
    DatabaseAway,
    Forbidden,
    HoldfastError,
    InvalidInput,
    Overloaded,
    SchemaMismatch,
    TimedOut,
    TooLarge,
    Unavailable,
)
from holdfast.core.ids import TenantId
from holdfast.engine import Engine
from holdfast.postgres.database import Database, open_owner
from holdfast.postgres.options import Options
from tests.postgres.backends import backend
from tests.remote import RemoteServer

pytestmark = pytest.mark.req("ENG-07")

# For what cannot be provoked on a healthy server: the server itself says it.
FAIL = """
create function public.fail(tenant uuid, state text) returns void language plpgsql as $$
begin raise exception 'as asked' using errcode = state; end $$
"""


@dataclass(frozen=True, slots=True)
class Refusal:
    statement: str
    kind: type[HoldfastError]
    state: str


REFUSALS = [
    Refusal("insert into item values ($1, 1)", AlreadyExists, "23505"),
    Refusal("insert into item values ($1, null)", InvalidInput, "23502"),
    Refusal("insert into principal (tenant_id, name, role) values ($1, 'ann', 'king')", InvalidInput, "23514"),
    Refusal("select 1 / 0 where $1::uuid is not null", InvalidInput, "22012"),
    Refusal("select 'x'::int where $1::uuid is not null", InvalidInput, "22P02"),
    Refusal("select 2147483647 + 1 where $1::uuid is not null", InvalidInput, "22003"),
    Refusal("insert into item values (gen_random_uuid(), length($1::uuid::text))", Forbidden, "42501"),
    Refusal("select id from tenant where id = $1", Forbidden, "42501"),
    Refusal("select 1 from nowhere where tenant_id = $1", SchemaMismatch, "42P01"),
    Refusal("select colour from item where tenant_id = $1", SchemaMismatch, "42703"),
    Refusal("select holdfast.nothing($1)", SchemaMismatch, "42883"),
    Refusal("selec $1", Broken, "42601"),
    Refusal("insert into identity values ($1, 'user', long_text(), gen_random_uuid())", TooLarge, "54000"),
]


@pytest.fixture
async def failing(engine: Engine, database: Database) -> Database:
    """A tenant's statements in a database that can fail in every way."""
    async with engine.postgres.owner() as owner:
        await owner.script(FAIL)
        await owner.script(
            "create function public.long_text() returns text language plpgsql as "
            "$$ begin return (select string_agg(gen_random_uuid()::text, '') from generate_series(1, 500)); end $$"
        )
    await database.run("insert into item values ($1, 1)")
    return database


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.statement[:40])
async def test_a_refusal_says_what_it_means_and_keeps_its_state(failing: Database, refusal: Refusal) -> None:
    with pytest.raises(HoldfastError) as refused:
        await failing.run(refusal.statement)

    assert type(refused.value) is refusal.kind
    assert refused.value.details["sqlstate"] == refusal.state
    assert refused.value.why
    assert await failing.run("update item set value = null where tenant_id = $1") == 1


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("40001", Overloaded),
        ("40P01", Overloaded),
        ("25006", Unavailable),
        ("53100", Unavailable),
        ("53300", Unavailable),
        ("58030", Unavailable),
        ("57014", TimedOut),
        ("57P01", DatabaseAway),
        ("57P02", DatabaseAway),
        ("57P03", DatabaseAway),
        ("08006", DatabaseAway),
        ("XX000", Broken),
    ],
)
async def test_what_a_sick_server_says_is_told_apart(failing: Database, state: str, kind: type[HoldfastError]) -> None:
    with pytest.raises(HoldfastError) as refused:
        await failing.value("select public.fail($1, $2)", state)

    assert type(refused.value) is kind
    assert await failing.run("update item set value = null where tenant_id = $1") == 1


async def test_what_refers_to_nothing_is_the_callers_mistake(engine: Engine, items: None) -> None:
    nobody = engine.postgres.tenant(TenantId(uuid4()))

    with pytest.raises(InvalidInput) as refused:
        await nobody.run("insert into principal (tenant_id, name) values ($1, 'ann')")

    assert refused.value.details["sqlstate"] == "23503"


async def test_the_wrong_number_of_parameters_is_our_mistake(database: Database) -> None:
    pid = await backend(database)

    with pytest.raises(Broken, match="expects 2 arguments"):
        await database.value("select $2::int where $1::uuid is not null")

    assert await backend(database) == pid


async def test_a_database_that_is_not_there_and_a_password_that_is_wrong_are_told_apart(remote: RemoteServer) -> None:
    there = remote.make_database("told_apart")
    wrong = {
        there.replace("told_apart", "nowhere"): "the database does not exist",
        there.replace(remote.password, "guess"): "rejected the login",
    }
    for url, said in wrong.items():
        with pytest.raises(Unavailable, match=said):
            async with open_owner(url, Options()):
                pass


@pytest.mark.req("SAFE-02")
async def test_a_refusal_does_not_show_the_row_that_stood_in_the_way(failing: Database) -> None:
    insert = "insert into item values ($1, $2, $3)"
    await failing.run(insert, 7, "a secret of ann's")

    with pytest.raises(AlreadyExists) as refused:
        await failing.run(insert, 7, "another")

    assert str(await failing.tenant()) not in str(refused.value)
    assert "secret" not in str(refused.value)
