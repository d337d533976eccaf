"""Plans of the statements of the audit, and enough rows that a missing index shows."""

from tests.rules.plan import NOON, Cold, Plan

_NEWEST = (10_000, 50, None, None, None)

OF_A_TENANT: dict[str, Plan | Cold] = {
    "audit/sql/chain.sql": Plan("audit_chain_pkey"),
    "audit/sql/entries.sql": Plan("audit_other_pkey", _NEWEST),
    "audit/sql/entries_of_target.sql": Plan("audit_other_tenant_id_target_seq_idx", (*_NEWEST, "tool 7")),
    "audit/sql/entries_of_user.sql": Plan("audit_person_other_tenant_id_user_name_seq_idx", (*_NEWEST, None, "user 7")),
    "audit/sql/entries_since.sql": Plan("audit_other_pkey", (300, 50, None, None, NOON, None, None)),
    "audit/sql/links.sql": Plan("audit_other_pkey", (300, 50)),
    "audit/sql/uncovered.sql": Plan("audit_person_other_pkey"),
}
OF_THE_SYSTEM: dict[str, Plan | Cold] = {
    "audit/sql/heads.sql": Cold("a row for each tenant, once in some minutes"),
    "audit/sql/sealing_gauges.sql": Plan("audit_open_pkey", (None, 10), whole=("tenant",)),
    "audit/sql/tenants_with_open_entries.sql": Plan("audit_open_pkey", whole=("tenant",)),
}
WITHOUT_LOOKUP_OF_THE_OWNER = ("audit/sql/tend.sql",)

# All rows are in the partition for other months: the planner reads an empty one whole, whatever index it has.
ROWS = """
do $$
declare
  month regclass;
begin
  for month in select inhrelid::regclass from pg_inherits
    where inhparent in ('audit'::regclass, 'audit_person'::regclass) and inhrelid::regclass::text !~ 'other$'
  loop
    execute format('drop table %s', month);
  end loop;
end $$;
insert into audit (tenant_id, seq, sealed_at, id, at, entry, previous, hash)
  select id, n, holdfast.now() - interval '3 years', gen_random_uuid(), holdfast.now(),
    json_build_object('action', 'tool.call', 'target', 'tool ' || n % 20, 'outcome', 'done'), '', ''
  from busy, generate_series(1, 400) n;
insert into audit_person (tenant_id, seq, sealed_at, salt, person)
  select tenant_id, seq, sealed_at, '', json_build_object('user', 'user ' || seq % 20) from audit;
insert into audit_open (tenant_id, id, entry) select id, gen_random_uuid(), '{}' from busy, generate_series(1, 200) n;
insert into audit_chain (tenant_id, hash, checkpoint_hash) select id, '', '' from tenant;
"""
