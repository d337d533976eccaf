-- Nodes of some conversations whose content contains a text, those of the newest conversations first. A text index is never used
-- under row-level security, so the number of searched conversations is limited instead.
select id, root, parent, seq, context_type, context_name, context_value, content, payload, state, key,
  version, revision, deleted, created_at, updated_at, form, null as native
from node
where tenant_id = $1 and root = any($2::uuid[]) and (root, seq) < ($4::uuid, $5::bigint)
  and not deleted and strpos(lower(content), lower($3)) > 0
order by root desc, seq desc limit $6
