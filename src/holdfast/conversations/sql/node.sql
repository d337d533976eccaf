-- A node.
select id, root, parent, seq, context_type, context_name, context_value, content, payload, state, key,
  version, revision, deleted, created_at, updated_at, form, null as native
from node where tenant_id = $1 and id = $2
