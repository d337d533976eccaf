-- Nodes of a user's conversations whose content has a text in it, those of the newest conversations first.
select n.id, n.root, n.parent, n.seq, n.context_type, n.context_name, n.context_value, n.content, n.payload,
  n.state, n.key, n.version, n.revision, n.deleted, n.created_at, n.updated_at, n.form, null as native,
  c.id as conversation_id, c.kind as conversation_kind, c.session_id as conversation_session_id, c.app_name as conversation_app_name,
  c.user_name as conversation_user_name, c.agent_name as conversation_agent_name, c.revision as conversation_revision, c.last_seq as conversation_last_seq,
  c.forked_from as conversation_forked_from, c.forked_at as conversation_forked_at, c.created_at as conversation_created_at, c.updated_at as conversation_updated_at,
  c.ended_at as conversation_ended_at
from conversation c join node n on n.tenant_id = $1 and n.root = c.id
where c.tenant_id = $1 and c.user_id = $8 and c.kind = 'conversation'
  and ($2::text is null or c.app_name = $2) and ($3::text is null or c.agent_name = $3)
  and c.id <= $5 and (c.id, n.seq) < ($5, $6::bigint)
  and not n.deleted and strpos(lower(n.content), lower($4)) > 0
order by c.id desc, n.seq desc limit $7
