-- Deletes the terms and vectors of skills or tools. Must be called before their rows are deleted or get other terms, in the same transaction.
create or replace function holdfast.unindex(tenant uuid, of_kind text, ids uuid[]) returns void language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
begin
  if of_kind = 'skill' then
    delete from public.registry_term x using public.skill_t s cross join unnest(s.terms) as w (term)
    where s.host_id = tenant and s.skill_id = any(ids) and x.host_id = tenant and x.kind = of_kind and x.term = w.term and x.id = s.skill_id;
  else
    delete from public.registry_term x using public.tool_t t cross join unnest(t.terms) as w (term)
    where t.host_id = tenant and t.tool_id = any(ids) and x.host_id = tenant and x.kind = of_kind and x.term = w.term and x.id = t.tool_id;
  end if;
  delete from public.registry_vector v where v.host_id = tenant and v.kind = of_kind and v.id = any(ids);
end $$;
revoke execute on function holdfast.unindex from public;
grant execute on function holdfast.unindex to holdfast_app;
