-- Changes a memory if it exists and `expected`, unless null, is its version. The old version is kept as a revision. Null fields of `changes` are
-- unchanged. New content comes with its terms, its digest and, if there is one, its vector, and
-- with what it names (`graph`, an element of link_graph).
create or replace function holdfast.change_memory(
  tenant uuid, memory_id uuid, expected int, operation text, changes json, vector_model text, given_vector halfvec
) returns table (current_version int, stored public.memory) language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  was public.memory;
  change constant public.memory := json_populate_record(null::public.memory, changes);
begin
  select m.* into was from public.memory m where m.tenant_id = tenant and m.id = change_memory.memory_id for update;
  if not found then
    return;
  end if;
  current_version := was.version;
  if expected <> was.version then
    return next;
    return;
  end if;
  insert into public.memory_revision (tenant_id, memory_id, version, operation, at, content, type, importance, trust, metadata)
  values (tenant, was.id, was.version, 'remember', was.created_at, was.content, was.type, was.importance, was.trust, was.metadata)
  on conflict do nothing;
  update public.memory m set
    version = m.version + 1,
    content = coalesce(change.content, m.content),
    type = coalesce(change.type, m.type),
    importance = coalesce(change.importance, m.importance),
    trust = coalesce(change.trust, m.trust),
    metadata = coalesce(change.metadata, m.metadata),
    expires_at = coalesce(change.expires_at, m.expires_at),
    valid_to = coalesce(change.valid_to, m.valid_to),
    superseded_by = coalesce(change.superseded_by, m.superseded_by),
    pinned = coalesce(change.pinned, m.pinned),
    buried_at = case operation when 'bury' then holdfast.now() when 'unbury' then null else m.buried_at end,
    digest = coalesce(change.digest, m.digest),
    language = coalesce(change.language, m.language),
    embedded = case when change.content is null then m.embedded else vector_model end,
    length = coalesce(change.length, m.length),
    tells_when = coalesce(change.tells_when, m.tells_when),
    terms = coalesce(change.terms, m.terms)
  where m.tenant_id = tenant and m.scope = was.scope and m.owner = was.owner and m.id = was.id
  returning m.* into stored;
  insert into public.memory_revision (tenant_id, memory_id, version, operation, content, type, importance, trust, metadata)
  values (tenant, stored.id, stored.version, operation, stored.content, stored.type, stored.importance, stored.trust, stored.metadata);
  if change.content is not null then
    delete from public.memory_vector v
    where v.tenant_id = tenant and v.scope = was.scope and v.owner = was.owner and v.model in ('', rtrim(was.embedded))
      and v.memory_id = was.id;
    insert into public.memory_vector (tenant_id, scope, owner, memory_id, dimensions, importance, live_until, model, embedding)
    select tenant, stored.scope, stored.owner, stored.id, vector_dims(given_vector), stored.importance, 'infinity', vector_model, given_vector
    where given_vector is not null;
    delete from public.memory_term t
    where t.tenant_id = tenant and t.scope = was.scope and t.owner = was.owner and t.term = any(was.terms) and t.memory_id = was.id;
    insert into public.memory_term (tenant_id, scope, owner, term, memory_id)
    select tenant, stored.scope, stored.owner, t.term, stored.id from unnest(stored.terms) as t (term)
    on conflict do nothing;
    perform holdfast.embed_next_anew(was);
  end if;
  perform holdfast.follow_memory(stored);
  if change.content is not null and was.scope <> 'session' then
    perform holdfast.unlink_entities(tenant, array[was.id], null);
    if json_typeof(changes -> 'graph') = 'object' then
      perform holdfast.link_graph(tenant, array[was.id], json_build_array(changes -> 'graph'));
    end if;
  end if;
  return next;
end $$;
revoke execute on function holdfast.change_memory from public;
grant execute on function holdfast.change_memory to holdfast_app;
