-- Copies the importance and the end (`live_until`) of a changed memory to its vectors and its links.
create or replace function holdfast.follow_memory(changed public.memory) returns void language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  ends constant timestamptz := least(changed.valid_to, changed.expires_at, changed.buried_at);
begin
  update public.memory_vector v
  set importance = changed.importance, live_until = ends
  where v.tenant_id = changed.tenant_id and v.scope = changed.scope and v.owner = changed.owner
    and v.model in ('', rtrim(changed.embedded)) and v.memory_id = changed.id;
  if changed.scope <> 'session' then
    update public.memory_entities l set live_until = ends
    where l.tenant_id = changed.tenant_id and l.memory_id = changed.id and l.live_until <> ends;
    update public.relationship_sources s set live_until = ends
    where s.tenant_id = changed.tenant_id and s.memory_id = changed.id and s.live_until <> ends;
  end if;
end $$;
revoke execute on function holdfast.follow_memory from public;
grant execute on function holdfast.follow_memory to holdfast_app;
