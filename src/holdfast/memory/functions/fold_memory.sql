-- Merges a repeated memory into the existing one with the same key or the same digest. If the existing one has expired, deletes it and returns
-- null.
create or replace function holdfast.fold_memory(tenant uuid, of_scope text, of_owner uuid, item public.memory) returns public.memory
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  kept public.memory;
  is_again boolean; -- the same words under another key: counts as a use
begin
  select m.* into kept from public.memory m
  where m.tenant_id = tenant and m.scope = of_scope and m.owner = of_owner and m.key = item.key
  for update;
  if not found then
    select m.* into kept from public.memory m
    where m.tenant_id = tenant and m.scope = of_scope and m.digest = item.digest and m.valid_to = 'infinity' and m.buried_at is null
    for update;
  end if;
  if not found then
    raise exception using errcode = 'serialization_failure', message = 'the memory that this one is merged into was deleted at the same time';
  end if;
  if kept.expires_at <= holdfast.now() then
    perform holdfast.delete_memories(tenant, of_scope, of_owner, array[kept.id], 'expired');
    return null;
  end if;
  is_again := item.key is not null and item.key is distinct from kept.key;
  if is_again or kept.importance < item.importance or kept.expires_at < item.expires_at
    or kept.last_accessed < coalesce(item.last_accessed, holdfast.now()) - interval '1 day' then -- a repetition counts as a use
    update public.memory m
    set importance = greatest(m.importance, item.importance), expires_at = greatest(m.expires_at, item.expires_at),
      access_count = m.access_count + is_again::int, last_accessed = greatest(m.last_accessed, coalesce(item.last_accessed, holdfast.now()))
    where m.tenant_id = tenant and m.scope = of_scope and m.owner = of_owner and m.id = kept.id
    returning m.* into kept;
    perform holdfast.follow_memory(kept);
  end if;
  return kept;
end $$;
revoke execute on function holdfast.fold_memory from public;
grant execute on function holdfast.fold_memory to holdfast_app;
