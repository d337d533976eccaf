-- Appends what a run has to say, all or nothing, unless another has the run by now; its streamed text has become a node and goes.
create or replace function holdfast.append_in_run(
  tenant uuid, run uuid, claim bigint, nodes uuid[], types text[], names text[], vals text[], contents text[], payloads jsonb[],
  node_keys text[]
) returns table (outcome text, id uuid, seq bigint, revision bigint, at timestamptz, topic text) language plpgsql as $$
#variable_conflict use_column
declare
  held public.runs;
begin
  select r.* from public.runs r where r.tenant_id = tenant and r.id = run into held;
  perform from public.conversation c where c.tenant_id = tenant and c.id = held.root for update;
  select r.* from public.runs r where r.tenant_id = tenant and r.id = run into held;
  if not found or held.token <> claim or held.finished_at is not null then
    return query select 'lapsed', null::uuid, null::bigint, null::bigint, null::timestamptz, null::text;
    return;
  end if;
  delete from public.turn_delta d where d.tenant_id = tenant and d.run_id = run and d.kind in ('token', 'thinking');
  return query select a.outcome, a.id, a.seq, a.revision, a.at, a.topic from holdfast.append_all(
    tenant, held.root, nodes, types, names, vals, contents, payloads, array_fill(null::text, array[cardinality(nodes)]),
    array_fill(null::json, array[cardinality(nodes)]), node_keys, null, null, null) a;
end $$;
revoke execute on function holdfast.append_in_run from public;
grant execute on function holdfast.append_in_run to holdfast_app;
