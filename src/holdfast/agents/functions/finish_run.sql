-- Ends a run that is held with this token. `next`: the next message of the conversation that waits for an answer. `told`: the data of the last event.
-- `more`: watchers have more to read, because nodes were appended at the end of the run, or later runs were cancelled already.
create or replace function holdfast.finish_run(
  tenant uuid, run uuid, claim bigint, ending text, answer uuid, error jsonb, out outcome text, out next uuid, out told jsonb, out more boolean
) language plpgsql as $$
#variable_conflict use_column
declare
  held public.runs := holdfast.held_run(tenant, run, claim);
  before bigint := (select c.revision from public.conversation c where c.tenant_id = tenant and c.id = held.root);
begin
  if held.id is null then
    outcome := 'lapsed';
    return;
  end if;
  told := holdfast.end_run(tenant, run, ending, finish_run.answer, finish_run.error);
  select r.trigger from public.runs r
    where r.tenant_id = tenant and r.root = held.root and r.finished_at is null order by r.number limit 1 into finish_run.next;
  more := exists (
    select from public.conversation c where c.tenant_id = tenant and c.id = held.root and c.revision > before) or exists (
    select from public.turn_delta d where d.tenant_id = tenant and d.root = held.root and d.n > held.number * 10000000000 + 9999999999);
  outcome := 'ended';
end $$;
revoke execute on function holdfast.finish_run from public;
grant execute on function holdfast.finish_run to holdfast_app;
