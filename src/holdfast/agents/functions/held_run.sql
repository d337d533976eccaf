-- The run that this token holds, its conversation locked and then itself; all null where another has it by now, or it has ended.
create or replace function holdfast.held_run(tenant uuid, run uuid, claim bigint) returns public.runs language plpgsql as $$
#variable_conflict use_column
declare
  held public.runs;
begin
  select r.* from public.runs r where r.tenant_id = tenant and r.id = run into held;
  perform from public.conversation c where c.tenant_id = tenant and c.id = held.root for update;
  select r.* from public.runs r
    where r.tenant_id = tenant and r.id = run and r.token = claim and r.finished_at is null for update into held;
  return held;
end $$;
revoke execute on function holdfast.held_run from public;
grant execute on function holdfast.held_run to holdfast_app;
