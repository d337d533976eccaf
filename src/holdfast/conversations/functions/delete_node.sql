-- Empties a node and all nodes below it. They keep their numbers, and their revisions keep the former versions.
-- `topic`: the topic whose consumers have to be woken.
create or replace function holdfast.delete_node(
  tenant uuid, node uuid, expected int, out outcome text, out version int, out topic text
) language plpgsql as $$
#variable_conflict use_column
declare
  change record;
  below uuid;
begin
  change := holdfast.begin_change(tenant, node, expected);
  outcome := coalesce(change.outcome, 'done');
  delete_node.version := change.version;
  if outcome <> 'done' then
    return;
  end if;
  for below in
    with recursive tree as (
      select node as id
      union all
      -- A lateral subquery per node: with a join, a table without statistics is read completely at every level.
      select below.id from tree t cross join lateral (
        select n.id from public.node n
        where n.tenant_id = tenant and n.parent = t.id and n.parent <> n.root and not n.deleted offset 0) below
    )
    select id from tree
  loop
    perform holdfast.part_native(tenant, below, change.revision);
    if below <> node then
      perform holdfast.keep_revision(tenant, below);
    end if;
    update public.node n set content = '', payload = null, form = null, native = null, deleted = true,
        version = n.version + 1, revision = change.revision, updated_at = holdfast.now()
      where n.tenant_id = tenant and n.id = below;
  end loop;
  if change.topic is not null then
    delete_node.topic := holdfast.tell(tenant, change.topic, change.hash, change.root, change.revision, node, 'delete');
  end if;
end $$;
revoke execute on function holdfast.delete_node from public;
grant execute on function holdfast.delete_node to holdfast_app;
