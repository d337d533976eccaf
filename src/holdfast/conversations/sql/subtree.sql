-- A node that is no root, and all below it; the order of siblings comes from their places.
with recursive tree as (
  select id, root, parent, seq, context_type, context_name, context_value, content, payload, state, key,
  version, revision, deleted, created_at, updated_at, form, place
  from node where tenant_id = $1 and id = $2 and not deleted
  union all
  select n.id, n.root, n.parent, n.seq, n.context_type, n.context_name, n.context_value, n.content, n.payload,
  n.state, n.key, n.version, n.revision, n.deleted, n.created_at, n.updated_at, n.form, n.place
  from tree t join node n on n.tenant_id = $1 and n.parent = t.id and n.parent <> n.root and not n.deleted
)
select *, null as native from tree limit $3
