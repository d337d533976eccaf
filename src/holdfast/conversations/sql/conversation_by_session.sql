-- The conversations that a session id means if no user is named; at most two.
select id, kind, coalesce(session_name, session_id) as session_id, app_name, user_name, agent_name, revision, last_seq, forked_from,
  forked_at, created_at, updated_at, ended_at
from holdfast.sessions_called($1, $2)
