-- The first half of every change to a node: locks the conversation, checks the version, stores the current version as a revision.
-- `outcome`: null if the change can continue; missing, root, deleted, or conflict with the current `version`.
-- `topic` and `hash`: where to publish the change.
create or replace function holdfast.begin_change(
  tenant uuid, node uuid, expected int,
  out outcome text, out root uuid, out version int, out revision bigint, out topic text, out hash bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  is_deleted boolean;
begin
  select n.root from public.node n where n.tenant_id = tenant and n.id = node into begin_change.root;
  perform from public.conversation c where c.tenant_id = tenant and c.id = begin_change.root for update;
  select n.version, n.deleted from public.node n
    where n.tenant_id = tenant and n.id = node into begin_change.version, is_deleted;
  outcome := case
    when not found then 'missing'
    when node = begin_change.root then 'root'
    when begin_change.version <> expected then 'conflict'
    when is_deleted then 'deleted'
  end;
  if outcome is not null then
    return;
  end if;
  update public.conversation c set revision = c.revision + 1, updated_at = holdfast.now()
    where c.tenant_id = tenant and c.id = begin_change.root
    returning c.revision, c.topic, c.hash into begin_change.revision, begin_change.topic, begin_change.hash;
  perform holdfast.keep_revision(tenant, node);
end $$;
revoke execute on function holdfast.begin_change from public;
grant execute on function holdfast.begin_change to holdfast_app;

-- Stores the current version of a node as a revision, before the node changes.
create or replace function holdfast.keep_revision(tenant uuid, node uuid) returns void language plpgsql as $$
begin
  insert into public.node_revision (
    tenant_id, node_id, version, parent, place, context_type, context_name, context_value,
    content, payload, form, native, deleted, revision, updated_at)
  select n.tenant_id, n.id, n.version, n.parent, n.place, n.context_type, n.context_name, n.context_value,
    n.content, n.payload, n.form, n.native, n.deleted, n.revision, n.updated_at
  from public.node n where n.tenant_id = tenant and n.id = node;
end $$;
revoke execute on function holdfast.keep_revision from public;
grant execute on function holdfast.keep_revision to holdfast_app;
