-- Replaces the access rules of a tenant, if they still have the version `known` (0: there are none; null: any). Forgets what was counted for rules
-- that are no longer on trial. The new revision of the registry tells clients that their lists of tools may have changed.
create or replace function holdfast.put_access_rules(tenant uuid, wording text, known bigint, on_trial text[], person text)
returns table (outcome text, version bigint) language plpgsql as $$
#variable_conflict use_column
declare
  was bigint;
begin
  perform holdfast.lock_registry(tenant);
  select r.version into was from public.access_rules r where r.tenant_id = tenant;
  was := coalesce(was, 0);
  if known is not null and known <> was then
    return query select 'conflict', was;
    return;
  end if;
  insert into public.access_rules as r (tenant_id, version, text, updated_by) values (tenant, 1, wording, person)
  on conflict (tenant_id) do update
    set version = r.version + 1, text = excluded.text, updated_at = excluded.updated_at, updated_by = excluded.updated_by;
  delete from public.access_rule_trial t where t.tenant_id = tenant and t.rule <> all(on_trial);
  perform holdfast.next_revision(tenant);
  return query select 'put', was + 1;
end $$;
revoke execute on function holdfast.put_access_rules from public;
grant execute on function holdfast.put_access_rules to holdfast_app;
