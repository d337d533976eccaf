"""Hot statements keep their index, seen as the role that runs them, with the policies on: else it proves nothing."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast.engine import Engine
from holdfast.postgres.database import PooledStatements
from holdfast.postgres.sql import statements

access = statements("holdfast.access.keys")

ROWS = """
insert into tenant (name) select 'tenant-' || n from generate_series(1, 3000) n;
create temp table busy as select id from tenant limit 50;
insert into identity select id, 'user', 'user ' || n, gen_random_uuid() from busy, generate_series(1, 400) n;
insert into principal (tenant_id, name) select id, 'user ' || n from busy, generate_series(1, 400) n;
insert into api_key (hash, kind, tenant_id, principal, scopes, secret_id)
  select sha256(convert_to(id::text || n, 'UTF8')), 'key', id, 'user', '{read}', 's'
  from busy, generate_series(1, 400) n;
analyze;
"""

OF_A_TENANT: dict[str, tuple[str, tuple[object, ...]]] = {
    "identity_name": ("identity_tenant_id_kind_id_key", ("user", uuid4())),
    "store_identity": ("", ("user", "ann", uuid4())),
    "ensure_principal": ("principal_pkey", ("user 7", "owner")),
}
OF_THE_SYSTEM: dict[str, tuple[str, tuple[object, ...]]] = {
    "valid_key": ("api_key_pkey", (b"hash",)),
    "use_link": ("api_key_pkey", (b"hash",)),
    "keys_of_tenant": ("api_key_by_tenant", (UUID(int=1),)),
    "revoke_key": ("Index Scan using api_key_", (UUID(int=1), UUID(int=2))),
    "tenant_by_name": ("tenant_name_key", ("tenant-7",)),
    "tenant_by_id": ("tenant_pkey", (UUID(int=1),)),
    "create_key": ("", (b"hash", "key", UUID(int=1), "ann", "", ["read"], "s", timedelta(days=1))),
}


@pytest.fixture
async def filled(engine: Engine) -> Engine:
    """An engine with enough rows that a missing index shows."""
    async with engine.postgres.owner() as owner:
        await owner.script(ROWS)
    return engine


async def plan(database: PooledStatements, name: str, args: tuple[object, ...]) -> str:
    """The plan of a packaged statement, as text."""
    rows: list[Any] = await database.all(f"explain (verbose) {access(name)}", *args)
    return "\n".join(row[0] for row in rows)


@pytest.mark.req("ENG-04")
@pytest.mark.parametrize("name", OF_A_TENANT)
async def test_a_statement_of_a_tenant_keeps_its_index_under_the_policies(filled: Engine, name: str) -> None:
    index, args = OF_A_TENANT[name]

    found = await plan(filled.tenant("tenant-7").database, name, args)

    assert index in found
    assert "Seq Scan" not in found


@pytest.mark.parametrize("name", OF_THE_SYSTEM)
async def test_a_statement_of_the_system_keeps_its_index(filled: Engine, name: str) -> None:
    index, args = OF_THE_SYSTEM[name]

    found = await plan(filled.postgres.system, name, args)

    assert index in found
    assert "Seq Scan" not in found


@pytest.mark.req("ENG-04")
async def test_the_plans_are_those_of_a_role_that_the_policies_hold(filled: Engine) -> None:
    found = await plan(filled.tenant("tenant-7").database, "identity_name", ("user", uuid4()))

    assert "current_setting('holdfast.tenant'" in found


async def test_a_lost_index_would_show(filled: Engine) -> None:
    async with filled.postgres.owner() as owner:
        await owner.script("alter table identity drop constraint identity_tenant_id_kind_id_key")

    found = await plan(filled.tenant("tenant-7").database, "identity_name", ("user", uuid4()))

    assert "identity_tenant_id_kind_id_key" not in found
