-- Returns the documents that a search covers and that have chunks, in order of their ids: an index scan over many of them is fastest in order.
create or replace function holdfast.allowed_documents(
  tenant uuid, scopes text[], owners uuid[], spaces text[], collections text[], documents uuid[], containing jsonb, since timestamptz,
  until timestamptz
) returns uuid[] language plpgsql stable
set enable_nestloop = on set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set jit = off as $$
begin
  if documents is not null then
    return array(
      select d.id from (select distinct g.id from unnest(documents) as g (id)) g
      join public.document d on d.tenant_id = tenant and d.id = g.id
      where d.chunks > 0 and holdfast.is_searched(
        d.scope, d.owner, d.collection, d.id, d.metadata, d.created_at, spaces, collections, null, containing, since, until)
      order by d.id);
  end if;
  return array(
    select d.id from unnest(scopes, owners) as o (scope, owner)
    join public.document d on d.tenant_id = tenant and d.scope = o.scope and d.owner = o.owner
    where d.chunks > 0 and holdfast.is_searched(
      d.scope, d.owner, d.collection, d.id, d.metadata, d.created_at, spaces, collections, null, containing, since, until)
    order by d.id);
end $$;
revoke execute on function holdfast.allowed_documents from public;
grant execute on function holdfast.allowed_documents to holdfast_app;
