-- Sets or removes a limit of a tenant (without a rule), and gives the change the next revision.
-- The counter is locked until the commit, so that whoever has seen a revision has missed no change before it.
-- Returns false if there is nothing to remove, or if the tenant would have more than `most` limits.
create or replace function holdfast.set_limit(tenant uuid, given_id uuid, operators boolean, given_rule text, by_user text, most int)
returns boolean language plpgsql as $$
declare
  next bigint;
begin
  if given_rule is null and not exists (
    select from public.usage_limit l where l.tenant_id = tenant and l.id = given_id and l.by_operator = operators and l.rule is not null)
  then
    return false;
  end if;
  insert into public.usage_limit_revision as r (tenant_id, revision) values (tenant, 1)
    on conflict (tenant_id) do update set revision = r.revision + 1 returning r.revision into next;
  if given_rule is not null
    and (select count(*) from public.usage_limit l where l.tenant_id = tenant and l.rule is not null and l.id <> given_id) >= most
  then
    return false;
  end if;
  insert into public.usage_limit as l (tenant_id, id, by_operator, rule, revision, update_user, update_ts)
    values (tenant, given_id, operators, given_rule, next, by_user, holdfast.now())
    on conflict (tenant_id, id) do update set rule = excluded.rule, revision = excluded.revision,
      update_user = excluded.update_user, update_ts = excluded.update_ts;
  return true;
end $$;
revoke execute on function holdfast.set_limit from public;
grant execute on function holdfast.set_limit to holdfast_app;
