-- Links those of the memories in `graph` that have one of these ids. `graph` are elements of link_entities, with "scope" and "owner".
create or replace function holdfast.link_graph(tenant uuid, ids uuid[], graph json) returns void language plpgsql
set enable_seqscan = off as $$
declare
  place record;
begin
  for place in
    select g.value ->> 'scope' as scope, (g.value ->> 'owner')::uuid as owner, json_agg(g.value) as items
    from json_array_elements(graph) g
    where (g.value ->> 'memory')::uuid = any(ids)
    group by 1, 2 order by 1, 2
  loop
    perform holdfast.link_entities(tenant, place.scope, place.owner, null, place.items);
  end loop;
end $$;
revoke execute on function holdfast.link_graph from public;
grant execute on function holdfast.link_graph to holdfast_app;
