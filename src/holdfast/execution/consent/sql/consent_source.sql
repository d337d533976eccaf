-- The source of this name whose back end needs the consent of users, and how its back end is reached.
select source_id, name, settings -> 'backend' as backend
from tool_source where host_id = $1 and name = $2 and active and settings -> 'backend' -> 'identity' ->> 'kind' = 'user'
