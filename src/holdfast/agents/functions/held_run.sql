-- Returns the run that is held with this token, and locks first its conversation and then the run. All null: another process has the run, or it has
-- ended.
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
