-- Deletes memories of one owner with their vectors, terms and revisions, and leaves a tombstone for each. Returns how many were deleted.
create or replace function holdfast.delete_memories(tenant uuid, of_scope text, of_owner uuid, ids uuid[], why text) returns int
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  gone public.memory;
  deleted int := 0;
  deleted_ids uuid[] := '{}';
begin
  for gone in
    delete from public.memory m
    where m.tenant_id = tenant and m.scope = of_scope and m.owner = of_owner and m.id = any(ids)
    returning m.*
  loop
    deleted := deleted + 1;
    deleted_ids := deleted_ids || gone.id;
    perform holdfast.embed_next_anew(gone);
    delete from public.memory_vector v
    where v.tenant_id = tenant and v.scope = of_scope and v.owner = of_owner and v.model in ('', rtrim(gone.embedded))
      and v.memory_id = gone.id;
    delete from public.memory_term t
    where t.tenant_id = tenant and t.scope = of_scope and t.owner = of_owner and t.term = any(gone.terms) and t.memory_id = gone.id;
    delete from public.memory_revision r where r.tenant_id = tenant and r.memory_id = gone.id;
    insert into public.memory_tombstone (tenant_id, memory_id, scope, owner, key_hash, reason)
    values (tenant, gone.id, of_scope, of_owner, sha256(convert_to(gone.key, 'UTF8')), why)
    on conflict (tenant_id, memory_id) do update set reason = excluded.reason, deleted_at = excluded.deleted_at;
  end loop;
  if of_scope <> 'session' and deleted > 0 then
    perform holdfast.unlink_entities(tenant, deleted_ids, null);
  end if;
  return deleted;
end $$;
revoke execute on function holdfast.delete_memories from public;
grant execute on function holdfast.delete_memories to holdfast_app;
