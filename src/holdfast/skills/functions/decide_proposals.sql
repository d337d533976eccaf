-- Decides about held definitions of tools of a source, by the names of the tools. Each has to have the given hash: what somebody approves is exactly
-- what they have seen. Approving stores the definitions, and pins them. Rejecting keeps the tools held.
-- `outcome`: decided; missing (`tools`: those without a held definition); conflict (`tools`: those whose definition is another one by now); taken
-- (`tools`: new ones whose name another tool has by now: they would get another name than the one that was seen).
-- `changes` are those of the approved tools: added, changed or same; `names` are theirs. `revision` is the registry's before any change.
create or replace function holdfast.decide_proposals(
  tenant uuid, source uuid, called text[], hashes text[], approves boolean, person text,
  out outcome text, out tools text[], out names text[], out changes text[], out revision bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  ids uuid[];
  wrong text[];
  operations text[];
  wanted text[];
  items jsonb[];
  flags jsonb[];
begin
  perform holdfast.lock_registry(tenant);
  select r.revision into decide_proposals.revision from public.registry r where r.host_id = tenant;
  select array_agg(r.proposal_id order by g.place), array_agg(g.name order by g.place) filter (where r.proposal_id is null),
    array_agg(g.name order by g.place) filter (where r.hash <> g.hash)
  into ids, tools, wrong
  from unnest(called, hashes) with ordinality g (name, hash, place) left join public.tool_proposal r
    on r.host_id = tenant and r.source_id = source and r.name = g.name and r.state in ('open', 'rejected');
  outcome := case when tools is not null then 'missing' when wrong is not null then 'conflict' else 'decided' end;
  tools := coalesce(tools, wrong);
  if outcome <> 'decided' then
    return;
  end if;
  if approves then
    select array_agg(r.name order by r.name) into tools
    from public.tool_proposal r join public.tool_t t
      on t.host_id = tenant and t.name = r.name and (t.source_id, t.operation) is distinct from (source, r.operation)
    where r.host_id = tenant and r.proposal_id = any(ids);
    if tools is not null then
      outcome := 'taken';
      return;
    end if;
    select array_agg(r.operation order by r.name), array_agg(r.name order by r.name), array_agg(r.item order by r.name),
      array_agg(r.warnings order by r.name)
    into operations, wanted, items, flags
    from public.tool_proposal r where r.host_id = tenant and r.proposal_id = any(ids);
    select array_agg(w.name), array_agg(w.change) into names, changes
    from holdfast.write_imported(tenant, source, operations, wanted, items, flags, person) w;
  end if;
  update public.tool_proposal r set state = case when approves then 'approved' else 'rejected' end, decided_at = holdfast.now(), decided_by = person
  where r.host_id = tenant and r.proposal_id = any(ids);
end $$;
revoke execute on function holdfast.decide_proposals from public;
grant execute on function holdfast.decide_proposals to holdfast_app;
