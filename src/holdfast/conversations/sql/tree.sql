-- A whole tree, as the log has it; the order of siblings comes from their places.
select id, root, parent, seq, context_type, context_name, context_value, content, payload, state, key,
  version, revision, deleted, created_at, updated_at, form, null as native, place
from node where tenant_id = $1 and root = $2 and not deleted limit $3
