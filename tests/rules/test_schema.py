import re

import pytest

from holdfast.postgres.database import OwnerConnection
from tests.rules.plans import SYSTEM, roles_of
from tests.rules.schema import RULES, SYSTEM_TABLES, tenant_tables, unprepared, unrouted, violations
from tests.rules.tree import ROOT, source

pytestmark = pytest.mark.req("ENG-04")

GOOD = """
create table public.planted (tenant_id uuid not null, id int not null, primary key (tenant_id, id));
call holdfast.hold_to_tenant('public.planted');
"""
PARTITIONED = (
    GOOD.replace("id));", "id)) partition by hash (tenant_id);")
    + "create table public.planted_0 partition of public.planted for values with (modulus 1, remainder 0);"
)
BARE = "create table public.planted (tenant_id uuid not null, id int not null, primary key (tenant_id, id));"
POLICY = "create policy of_the_tenant_asked_for on public.planted to holdfast_app using ({}) with check ({});"
ASKED = "tenant_id = current_setting('holdfast.tenant')::uuid"
FORGIVING = "tenant_id = current_setting('holdfast.tenant', true)::uuid"
APPLICATION = "the application sees the tenant it asked for, and fails if it asked for none"

VIEW = GOOD + "create view public.planted_view with (security_invoker = true) as select * from public.planted;"
WRITTEN = VIEW + (
    "create trigger written instead of insert or update or delete on public.planted_view for each row "
    "execute function suppress_redundant_updates_trigger();"
)

PLANTED = [
    ("every table has a tenant", "create table public.planted (id uuid primary key)"),
    ("every table has a tenant", "create table public.planted (tenant_id uuid, id int, unique (tenant_id, id))"),
    ("every table has a tenant", "create table public.planted (tenant_id text primary key)"),
    ("row-level security is on and forced", BARE),
    ("row-level security is on and forced", GOOD + "alter table public.planted no force row level security"),
    ("row-level security is on and forced", GOOD + "alter table public.planted disable row level security"),
    (APPLICATION, BARE),
    (APPLICATION, BARE + POLICY.format(ASKED, "true")),
    (APPLICATION, BARE + POLICY.format("true", ASKED)),
    (APPLICATION, BARE + POLICY.format(FORGIVING, FORGIVING)),
    (
        APPLICATION,
        BARE + POLICY.format(ASKED, ASKED).replace("to holdfast_app", "for select to holdfast_app").split(" with")[0],
    ),
    (
        "no other policy opens a table to the application, a tenant's login or everybody",
        GOOD + "create policy more on public.planted using (true)",
    ),
    ("a tenant's login is held to the tenant whose it is", BARE + POLICY.format(ASKED, ASKED)),
    (
        "no policy has a subquery",
        GOOD + "create policy more on public.planted to holdfast_system using (exists (select from tenant))",
    ),
    ("every table has a primary key", "create table public.planted (tenant_id uuid not null)"),
    ("primary and unique keys lead with the tenant", GOOD + "alter table public.planted add unique (id, tenant_id)"),
    ("primary and unique keys lead with the tenant", GOOD + "create unique index on public.planted (id)"),
    (
        "foreign keys lead with the tenant",
        GOOD + "alter table public.planted add key bytea references public.api_key (hash)",
    ),
    (
        "foreign keys lead with the tenant",
        GOOD + "alter table public.planted add other uuid, add foreign key (other, id) references public.planted",
    ),
    (
        "no table has a trigger",
        GOOD + "create trigger planted before update on public.planted for each row "
        "execute function suppress_redundant_updates_trigger()",
    ),
    ("no counter has 32 bits", GOOD + "alter table public.planted add n int generated always as identity"),
    ("no counter has 32 bits", GOOD + "alter table public.planted add n serial"),
    ("a view runs with the rights of who asks", "create view public.planted as select 1 as one"),
    ("a view runs with the rights of who asks", "create materialized view public.planted as select 1 as one"),
    ("a view is written through its own triggers or not at all", VIEW),
    ("a view is written through its own triggers or not at all", WRITTEN.replace(" or delete", "")),
    (
        "a function with its owner's rights has its own search_path",
        "create function holdfast.planted() returns int language plpgsql security definer as 'begin return 1; end'",
    ),
    (
        "a function with its owner's rights belongs to no superuser",
        "create function holdfast.planted() returns int language plpgsql security definer as 'begin return 1; end'",
    ),
    (
        "no function takes the row of a table",
        GOOD + "create function holdfast.planted(uuid, public.planted) returns int language plpgsql as 'begin end'; "
        "revoke execute on function holdfast.planted from public",
    ),
    (
        "no function takes the row of a table",
        GOOD + "create function holdfast.planted(public.planted[]) returns int language plpgsql as 'begin end'; "
        "revoke execute on function holdfast.planted from public",
    ),
    (
        "no function forces a generic plan",
        GOOD + "create function holdfast.planted() returns int language plpgsql as 'begin end' "
        "set plan_cache_mode = force_generic_plan; revoke execute on function holdfast.planted from public",
    ),
    (
        "no global table has a foreign key",
        GOOD + "alter table public.relay_lease add planted uuid references public.tenant (id)",
    ),
    (
        "not everybody may call a function",
        "create function public.planted() returns int language plpgsql as 'begin return 1; end'",
    ),
    (
        "a partition has no grant of its own",
        PARTITIONED + "grant select on public.planted_0 to holdfast_app",
    ),
    ("a tenant's login only reads", GOOD + "grant update on public.planted to holdfast_tenant"),
    ("the system reaches listed tables only", GOOD + "call holdfast.open_to_system('public.planted', 'select')"),
    ("tenants reach no global table, and everybody no table at all", "grant select on public.tenant to holdfast_app"),
    ("tenants reach no global table, and everybody no table at all", "grant select on public.identity to public"),
    ("the roles that run statements own nothing", GOOD + "alter table public.planted owner to holdfast_app"),
]
ALLOWED = [
    GOOD,
    GOOD.replace("tenant_id", "host_id").replace("('public.planted')", "('public.planted', 'host_id')"),
    GOOD + "alter table public.planted add foreign key (tenant_id) references public.tenant",
    GOOD + "alter table public.planted add other int, add foreign key (tenant_id, other) references public.planted",
    GOOD + "alter table public.planted add n bigint generated always as identity",
    GOOD + "create type holdfast.draft as (id int); create function holdfast.planted(holdfast.draft[]) returns int "
    "language plpgsql as 'begin end'; revoke execute on function holdfast.planted from public",
    WRITTEN,
    VIEW.replace("select *", "select distinct *"),
    PARTITIONED,
]
BROKEN = [
    "-- Not in the schema.\nselect colour from identity where tenant_id = $1",
    "-- Not a statement.\nselec 1",
    "-- Not for this role.\nselect name from holdfast.migration where $1::uuid is not null",
]
UNROUTED = [
    "select name from identity",
    "select name from identity where tenant_id = $2 and kind = $1",
    "select i.name from identity i join principal p on p.tenant_id = i.tenant_id where i.tenant_id = $1",
    "delete from identity -- where tenant_id = $1",
    "update principal set role = 'owner' where name = $1",
    "insert into identity (kind, name, id, tenant_id) values ($2, $3, $4, $1)",
    "insert into identity (tenant_id, name) select tenant_id, name from principal where tenant_id = $1",
]
ROUTED = [
    "select i.name from identity i join principal p on p.tenant_id = $1 where i.tenant_id = $1",
    "insert into identity (tenant_id, kind) select $1, kind from unnest($2::text[]) kind returning id",
    "select id from tenant where name = $1",
]


async def test_the_schema_keeps_every_rule(owner: OwnerConnection) -> None:
    assert await violations(owner) == []


@pytest.mark.parametrize(("rule", "planted"), PLANTED)
async def test_what_breaks_a_rule_is_found(owner: OwnerConnection, rule: str, planted: str) -> None:
    await owner.script(planted)

    found = await violations(owner)

    assert any(violation.startswith(f"{rule}: ") for violation in found)
    assert all("planted" in violation or "holdfast_app" in violation or "PUBLIC" in violation for violation in found)


def test_every_rule_has_been_seen_failing() -> None:
    assert {rule for rule, _ in PLANTED} == {rule.name for rule in RULES}


@pytest.mark.parametrize("planted", ALLOWED)
async def test_a_table_made_as_it_should_be_breaks_no_rule(owner: OwnerConnection, planted: str) -> None:
    await owner.script(planted)

    assert await violations(owner) == []


async def test_every_statement_fits_the_schema_and_the_role_that_runs_it(owner: OwnerConnection) -> None:
    assert await unprepared(owner, source(ROOT, ".sql")) == []


@pytest.mark.parametrize("folder", ["access/sql", "memory/knowledge/files/sql"])
@pytest.mark.parametrize("planted", BROKEN)
async def test_a_statement_that_does_not_fit_is_found(owner: OwnerConnection, folder: str, planted: str) -> None:
    found = await unprepared(owner, [(f"src/holdfast/{folder}/planted.sql", planted)])

    assert len(found) == 1


@pytest.mark.parametrize(
    ("listed", "planted"),
    [
        ("access/sql/identity_name.sql", "select id from tenant where id = $1"),
        ("access/sql/tenants.sql", "select name from identity where tenant_id = $1"),
        ("bus/sql/publish.sql", "select holdfast.tend_log($1, $2, $3)"),
    ],
)
async def test_a_statement_is_for_the_role_that_runs_it(owner: OwnerConnection, listed: str, planted: str) -> None:
    found = await unprepared(owner, [(f"src/holdfast/{listed}", planted)])

    assert len(found) == 1


def test_the_system_reaches_no_table_that_none_of_its_statements_names() -> None:
    texts = [re.sub(r"--[^\n]*", "", text) for name, text in source(ROOT, ".sql") if roles_of(name) == (SYSTEM,)]

    named = {f"public.{table}" for table in re.findall(r"\b(?:from|join|into|update)\s+(\w+)", "\n".join(texts))}

    assert set(SYSTEM_TABLES) <= named


async def test_every_statement_names_the_tenant_for_every_table(owner: OwnerConnection) -> None:
    assert unrouted(await tenant_tables(owner), source(ROOT, ".sql")) == []


@pytest.mark.parametrize("folder", ["access/sql", "bus/kafka/sql"])
@pytest.mark.parametrize("planted", UNROUTED)
async def test_a_statement_that_forgets_the_tenant_is_found(owner: OwnerConnection, folder: str, planted: str) -> None:
    found = unrouted(await tenant_tables(owner), [(f"src/holdfast/{folder}/planted.sql", planted)])

    assert found != []


@pytest.mark.parametrize("planted", ROUTED)
async def test_a_statement_that_names_the_tenant_is_left_alone(owner: OwnerConnection, planted: str) -> None:
    assert unrouted(await tenant_tables(owner), [("src/holdfast/access/sql/planted.sql", planted)]) == []
