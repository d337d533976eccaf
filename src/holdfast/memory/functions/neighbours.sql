-- Returns the turns before and after these memories in their conversations. Only nested loops: each memory takes two index lookups.
create or replace function holdfast.memory_neighbours(tenant uuid, of_scope text, of_owner uuid, ids uuid[]) returns uuid[]
language plpgsql stable
set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
begin
  return array(
    select near.id
    from public.memory m, lateral (
      (select n.id from public.memory n
       where n.tenant_id = tenant and n.scope = of_scope and n.owner = of_owner and n.conversation = m.conversation and n.seq < m.seq
       order by n.seq desc limit 1)
      union all
      (select n.id from public.memory n
       where n.tenant_id = tenant and n.scope = of_scope and n.owner = of_owner and n.conversation = m.conversation and n.seq > m.seq
       order by n.seq limit 1)
    ) near
    where m.tenant_id = tenant and m.scope = of_scope and m.owner = of_owner and m.id = any(ids));
end $$;
revoke execute on function holdfast.memory_neighbours from public;
grant execute on function holdfast.memory_neighbours to holdfast_app;
