-- Writes the indexer's results for skills or tools: JSON with id, terms and embedded, and `vectors` in the same order, null for none. Returns the ids
-- of the written entries. An entry whose name or description has changed since it was read is left alone.
-- The registry's row is locked first, as in every function that changes the registry, to prevent deadlocks.
create or replace function holdfast.index_registry(
  tenant uuid, of_kind text, names text[], descriptions text[], items jsonb, vectors halfvec[]
) returns uuid[] language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  place int := 0;
  item record;
  small vector;
  written uuid[] := '{}';
begin
  perform from public.registry r where r.host_id = tenant for update;
  for item in
    select g.* from jsonb_to_recordset(items) as g (id uuid, terms bigint[], embedded text)
  loop
    place := place + 1;
    small := case when vector_dims(vectors[place]) = 384 then vectors[place]::vector end;
    if of_kind = 'skill' then
      update public.skill_t s set
        terms = coalesce(s.terms, item.terms), embedded = coalesce(item.embedded, s.embedded),
        description_embedding = case when item.embedded is null then s.description_embedding else small end
      where s.host_id = tenant and s.skill_id = item.id and s.name = names[place] and s.description = descriptions[place];
    else
      update public.tool_t t set
        terms = coalesce(t.terms, item.terms), embedded = coalesce(item.embedded, t.embedded),
        description_embedding = case when item.embedded is null then t.description_embedding else small end
      where t.host_id = tenant and t.tool_id = item.id and t.name = names[place] and t.description = descriptions[place];
    end if;
    continue when not found;
    written := written || item.id;
    insert into public.registry_term (host_id, kind, term, id)
    select tenant, of_kind, w.term, item.id from unnest(item.terms) as w (term)
    on conflict do nothing;
    if vectors[place] is not null then
      insert into public.registry_vector (host_id, kind, id, model, embedding)
      values (tenant, of_kind, item.id, item.embedded, vectors[place])
      on conflict (host_id, kind, id) do update set model = excluded.model, embedding = excluded.embedding;
    end if;
  end loop;
  return written;
end $$;
revoke execute on function holdfast.index_registry from public;
grant execute on function holdfast.index_registry to holdfast_app;
