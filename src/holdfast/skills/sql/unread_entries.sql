-- Skills and tools that came by plain SQL, and whose words nobody has read yet.
(select 'skill' as kind, skill_id as id, name::text, description::text, embedded from skill_t where host_id = $1 and terms is null limit $2)
union all
(select 'tool', tool_id, name, description, embedded from tool_t where host_id = $1 and terms is null limit $2)
