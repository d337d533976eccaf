import asyncio

import pytest

from holdfast.postgres.database import OwnerConnection, open_owner
from holdfast.postgres.embedded import EmbeddedServer
from holdfast.postgres.options import Options
from tests.conftest import TEMPLATE, clone_database
from tests.rules.distribution import KNOWN, RULES, Facts, facts_of, functions, refused
from tests.rules.plans import PACKAGE
from tests.rules.tree import ROOT, beyond, source

COPY = "insert … select that becomes a COPY"
UPSERT = "upsert by a function that is not immutable"
ACTS = "a function that acts, over a table"
ROW = "the whole row of a subquery"
LOCK = "rows locked across tenants"
JOIN = "join across tenants"
EXTENSION = "create extension"

PLANTED = [
    (COPY, "insert into node (tenant_id, id) select $1, id from unnest($2::uuid[]) id"),
    (COPY, "with n as (insert into public.node (tenant_id, id) select $1, id from node where tenant_id = $1) select 1"),
    (
        UPSERT,
        "insert into state (tenant_id, at) values ($1, $2) on conflict (tenant_id) do update set at = holdfast.now()",
    ),
    (UPSERT, "insert into state (tenant_id) values ($1) on conflict (tenant_id) do update set v = to_jsonb($2)"),
    (ACTS, "select holdfast.append($1, n.id) from node n where n.tenant_id = $1"),
    (ACTS, "select pg_notify('changed', '') from node where tenant_id = $1"),
    (ACTS, "update node set version = 2 from set_config('synchronous_commit', 'off', true) where tenant_id = $1"),
    (ROW, "with n as (select 1 as one) select to_jsonb(n) from n"),
    (ROW, "select array_agg(x) from (select id from node where tenant_id = $1) x"),
]
PLANTED_ACROSS = [
    (LOCK, "select id from node for update skip locked"),
    (JOIN, "select n.id from node n join conversation c on c.tenant_id = n.tenant_id"),
    (JOIN, "delete from node where id in (select id from node limit 10)"),
]
ALLOWED = [
    "insert into node (tenant_id, id) select $1, id from unnest($2::uuid[]) id returning id",
    "insert into node (tenant_id, id) select $1, id from unnest($2::uuid[]) id on conflict do nothing",
    "insert into node (tenant_id, id) values ($1, holdfast.uuid7())",
    "insert into state (tenant_id, at) values ($1, holdfast.now()) on conflict (at) do update set at = excluded.at",
    "select holdfast.append($1, id) from unnest($2::uuid[]) id",
    "select to_jsonb(n), n.id from node n where n.tenant_id = $1",
    "with n as (select 1 as one) select n.one from n",
    "select id from node where tenant_id = $1 for update skip locked",
]
FUNCTION = """
#variable_conflict use_column
declare
  found_id uuid; -- not; a statement
begin
  if exists (select from public.node n where n.tenant_id = tenant) then
    select case when n.id is null then 1 else 2 end, n.id from public.node n into strict count, put.found_id;
  end if;
  for one in select n.id from public.node n where n.id in (select 1) loop
    {}
  end loop;
  return query select 1;
end
"""


@pytest.fixture(scope="module")
def facts(server: EmbeddedServer) -> Facts:
    """What the catalogue of a migrated database says; no test changes it."""

    async def read() -> Facts:
        async with clone_database(server, TEMPLATE) as url, open_owner(url, Options()) as owner:
            return await facts_of(owner)

    return asyncio.run(read())


async def test_no_statement_has_a_form_that_a_cluster_refuses(owner: OwnerConnection) -> None:
    found = refused(await facts_of(owner), [*source(ROOT, ".sql"), *await functions(owner)])

    assert beyond(KNOWN, found) == []


@pytest.mark.parametrize(("rule", "planted"), PLANTED)
@pytest.mark.parametrize("place", [f"{PACKAGE}memory/sql/planted.sql", "holdfast.planted()"])
def test_a_refused_form_is_found(facts: Facts, place: str, rule: str, planted: str) -> None:
    text = FUNCTION.format(planted.replace("$1", "tenant") + ";") if place.endswith("()") else planted

    found = refused(facts, [(place, text)])

    assert [violation.partition(":")[0] for violation in found] == [rule]


@pytest.mark.parametrize(("rule", "planted"), PLANTED_ACROSS)
def test_a_form_refused_across_tenants_is_found(facts: Facts, rule: str, planted: str) -> None:
    found = refused(facts, [(f"{PACKAGE}bus/kafka/sql/unsent.sql", planted)])

    assert [violation.partition(":")[0] for violation in found] == [rule]


@pytest.mark.parametrize("planted", ALLOWED)
def test_what_resembles_a_refused_form_is_allowed(facts: Facts, planted: str) -> None:
    texts = [(f"{PACKAGE}memory/sql/planted.sql", planted), ("holdfast.planted()", FUNCTION.format(planted + ";"))]

    assert refused(facts, texts) == []


def test_an_extension_is_created_where_it_is_missing_only(facts: Facts) -> None:
    name = f"{PACKAGE}postgres/migrations/9999_planted.sql"
    guarded = "do $$ begin if true then create extension vector; end if; end $$"

    assert len(refused(facts, [(name, "create extension if not exists vector")])) == 1
    assert refused(facts, [(name, guarded)]) == []


def test_every_rule_has_been_seen_failing() -> None:
    assert {rule for rule, _ in PLANTED + PLANTED_ACROSS} | {EXTENSION} == {rule.name for rule in RULES}


def test_a_known_violation_that_is_mended_leaves_the_list() -> None:
    known = {"a rule": "here there"}

    assert beyond(known, ["a rule: here; do better", "a rule: there"]) == []
    assert beyond(known, ["a rule: here"]) == ["a rule: there is mended; remove it from the list of known ones"]
    assert beyond(known, ["a rule: here", "a rule: there", "a rule: new; do better"]) == ["a rule: new; do better"]
