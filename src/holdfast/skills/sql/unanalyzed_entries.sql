-- Skills and tools that were written by plain SQL and have no terms yet.
(select 'skill' as kind, skill_id as id, name::text, description::text, embedded from skill_t where host_id = $1 and terms is null limit $2)
union all
(select 'tool', tool_id, name, description, embedded from tool_t where host_id = $1 and terms is null limit $2)
