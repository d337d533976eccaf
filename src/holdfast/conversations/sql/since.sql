-- The nodes of a conversation after a number, oldest first. Deleted nodes are included, empty, so that no number is missing.
select id, root, parent, seq, context_type, context_name, context_value, content, payload, state, key,
  version, revision, deleted, created_at, updated_at, form, case when form = $5::text then native end as native
from node where tenant_id = $1 and root = $2 and seq > $3
order by seq limit $4
