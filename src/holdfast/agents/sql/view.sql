-- Returns the newest nodes of a conversation, oldest first, and its revision. One statement, so that both are from one snapshot.
select c.revision as current, c.last_seq, coalesce(c.session_name, c.session_id) as session_id, c.user_name, n.*
from conversation c left join lateral (
  select id, root, parent, seq, context_type, context_name, context_value, content, payload, state, key,
    version, revision, deleted, created_at, updated_at, form, null as native
  from node where tenant_id = $1 and root = $2 and seq > 0 and not deleted order by seq desc limit $3
) n on true
where c.tenant_id = $1 and c.id = $2 order by n.seq
