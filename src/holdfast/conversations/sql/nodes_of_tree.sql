-- Nodes of a tree by their ids, in no order, without those that were deleted since the tree was read.
select id, root, parent, seq, context_type, context_name, context_value, content, payload, state, key,
  version, revision, deleted, created_at, updated_at, form, null as native
from node where tenant_id = $1 and id = any($2) and not deleted
