"""Rules for the plans of statements, seen as the role that runs them, with the policies on: else they prove nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from holdfast.engine import Engine
from tests.rules.schema import OWNERS_FOLDERS, folder_of
from tests.rules.tree import ROOT

PACKAGE = "src/holdfast/"
ID = UUID(int=1)


@dataclass(frozen=True, slots=True)
class Plan:
    """What stands in the plan of a hot statement ("" where nothing is looked up), and arguments to ask for it."""

    has: str
    args: tuple[object, ...] = ()


OF_A_TENANT = {
    "access/sql/identity_name.sql": Plan("identity_tenant_id_kind_id_key", ("user", ID)),
    "access/sql/store_identity.sql": Plan("identity_tenant_id_kind_id_key", ("user", "ann", ID)),
    "access/sql/ensure_principal.sql": Plan("principal_pkey", ("user 7", "owner")),
}
OF_THE_SYSTEM = {
    "access/sql/any_key.sql": Plan("api_key_by_secret"),
    "access/sql/create_key.sql": Plan("", (b"hash", "key", ID, "ann", "", ["read"], "s", timedelta(days=1))),
    "access/sql/create_tenant.sql": Plan("", ("tenant-0",)),
    "access/sql/end_session.sql": Plan("api_key_pkey", (b"hash",)),
    "access/sql/forget_expired.sql": Plan("api_key_by_expiry"),
    "access/sql/keys_of_other_secrets.sql": Plan("api_key_by_secret", ("s",)),
    "access/sql/keys_of_tenant.sql": Plan("api_key_by_tenant", (ID,)),
    "access/sql/revoke_key.sql": Plan("Index Scan using api_key_", (ID, UUID(int=2))),
    "access/sql/tenant_by_id.sql": Plan("tenant_pkey", (ID,)),
    "access/sql/tenant_by_name.sql": Plan("tenant_name_key", ("tenant-7",)),
    "access/sql/use_link.sql": Plan("api_key_pkey", (b"hash",)),
    "access/sql/valid_key.sql": Plan("api_key_pkey", (b"hash",)),
}
# Statements that may read a whole table, and why.
COLD = {"access/sql/tenants.sql": "lists every tenant, for who runs the installation"}

# Enough rows that a missing index shows: many tenants, of whom some are busy, and few keys beside many sessions.
ROWS = """
insert into tenant (name) select 'tenant-' || n from generate_series(1, 3000) n;
create temp table busy as select id from tenant limit 50;
insert into identity select id, 'user', 'user ' || n, gen_random_uuid() from busy, generate_series(1, 400) n;
insert into principal (tenant_id, name) select id, 'user ' || n from busy, generate_series(1, 400) n;
insert into api_key (hash, kind, tenant_id, principal, scopes, secret_id, expires_at)
  select sha256(convert_to(id::text || n, 'UTF8')), case when n > 398 then 'key' else 'session' end, id, 'user',
    '{read}', 's', holdfast.now() + n * interval '1 minute'
  from busy, generate_series(1, 400) n;
analyze;
"""


async def unindexed(engine: Engine) -> list[str]:
    """Hot statements that lost their index."""
    tenant, system = engine.tenant("tenant-7").database, engine.postgres.system
    found: list[str] = []
    for statements, database in ((OF_A_TENANT, tenant), (OF_THE_SYSTEM, system)):
        for name, wanted in statements.items():
            text = (ROOT / PACKAGE / name).read_text("utf-8")
            rows: list[Any] = await database.all(f"explain (verbose) {text}", *wanted.args)
            plan = "\n".join(row[0] for row in rows)
            if wanted.has not in plan or "Seq Scan" in plan:
                found.append(f"{PACKAGE}{name}: its plan should have `{wanted.has}`, and no Seq Scan:\n{plan}")
    return found


def unplanned(sources: Iterable[tuple[str, str]]) -> list[str]:
    """Statements of a domain of which nobody said whether they are hot; the owner's read the catalogue."""
    known: tuple[Mapping[str, object], ...] = (OF_A_TENANT, OF_THE_SYSTEM, COLD)
    return [
        f"{name}: nobody said how it finds its rows; list it in tests/rules/plans.py, with its index or as cold"
        for name, _ in sources
        if folder_of(name) not in (None, *OWNERS_FOLDERS)
        and not any(name.removeprefix(PACKAGE) in statements for statements in known)
    ]
