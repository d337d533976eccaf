-- A conversation.
select id, kind, coalesce(session_name, session_id) as session_id, app_name, user_name, agent_name, revision, last_seq, forked_from,
  forked_at, created_at, updated_at, ended_at
from conversation where tenant_id = $1 and id = $2
