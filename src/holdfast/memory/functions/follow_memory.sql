-- Copies the importance and the end (`live_until`) of a changed memory to its vectors.
create or replace function holdfast.follow_memory(changed public.memory) returns void language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
begin
  update public.memory_vector v
  set importance = changed.importance, live_until = least(changed.valid_to, changed.expires_at, changed.buried_at)
  where v.tenant_id = changed.tenant_id and v.scope = changed.scope and v.owner = changed.owner
    and v.model in ('', rtrim(changed.embedded)) and v.memory_id = changed.id;
end $$;
revoke execute on function holdfast.follow_memory from public;
grant execute on function holdfast.follow_memory to holdfast_app;
