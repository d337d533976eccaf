-- Replaces the content of a node, and its payload unless `keep` is set. The JSON that a framework stored for it is no longer right and
-- is removed; the revision keeps it.
-- `topic`: the topic whose consumers have to be woken.
create or replace function holdfast.edit_node(
  tenant uuid, node uuid, expected int, content text, payload jsonb, keep boolean,
  out outcome text, out version int, out topic text
) language plpgsql as $$
#variable_conflict use_column
declare
  change record;
begin
  change := holdfast.begin_change(tenant, node, expected);
  outcome := coalesce(change.outcome, 'done');
  edit_node.version := change.version;
  if outcome <> 'done' then
    return;
  end if;
  perform holdfast.part_native(tenant, node, change.revision);
  update public.node n set content = edit_node.content, payload = case when keep then n.payload else edit_node.payload end,
      form = null, native = null,
      version = n.version + 1, revision = change.revision, updated_at = holdfast.now()
    where n.tenant_id = tenant and n.id = node;
  if change.topic is not null then
    edit_node.topic := holdfast.tell(tenant, change.topic, change.hash, change.root, change.revision, node, 'edit');
  end if;
end $$;
revoke execute on function holdfast.edit_node from public;
grant execute on function holdfast.edit_node to holdfast_app;
