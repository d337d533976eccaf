-- The conversations of a tenant, newest first. Ids grow with time, so a page continues after the last id of the page before.
-- $7: only those in which something was said. Few are empty (a chat that was opened and left), so there is no index for this.
select id, kind, coalesce(session_name, session_id) as session_id, app_name, user_name, agent_name, revision, last_seq, forked_from,
  forked_at, created_at, updated_at, ended_at
from conversation
where tenant_id = $1 and id < $5 and kind = $4
  and ($2::text is null or app_name = $2) and ($3::text is null or agent_name = $3)
  and (last_seq > 0 or not $7)
order by id desc limit $6
