-- The former versions of a node after a version ($3), oldest first, and the current one; at most $4 rows (null: all).
select node_id, version, parent, context_type, context_name, context_value, content, payload,
  form, native, deleted, revision, updated_at
from node_revision where tenant_id = $1 and node_id = $2 and version > $3
union all
select id, version, parent, context_type, context_name, context_value, content, payload,
  form, native, deleted, revision, updated_at
from node where tenant_id = $1 and id = $2 and version > $3
order by version limit $4
