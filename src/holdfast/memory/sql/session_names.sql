-- Returns the names of sessions and the ids they are stored under; and the user, if other users can have a session of the same name.
select id, coalesce(session_name, session_id) as name, session_id as stored,
  case when session_name is not null then user_name end as user_name
from conversation where tenant_id = $1 and id = any($2::uuid[]) and session_id is not null
