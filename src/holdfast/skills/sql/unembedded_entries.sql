-- Skills and tools without a vector, or, if models are given ($2), with a vector of another model; except those that a model has just refused ($3).
(
  select 'skill' as kind, skill_id as id, name::text, description::text, embedded from skill_t
  where host_id = $1 and embedded is null and skill_id <> all($3::uuid[]) limit $4
)
union all
(
  select 'tool', tool_id, name, description, embedded from tool_t
  where host_id = $1 and embedded is null and tool_id <> all($3::uuid[]) limit $4
)
union all
(
  select 'skill', skill_id, name, description, embedded from skill_t
  where host_id = $1 and embedded <> all($2::text[]) and skill_id <> all($3::uuid[]) limit $4
)
union all
(
  select 'tool', tool_id, name, description, embedded from tool_t
  where host_id = $1 and embedded <> all($2::text[]) and tool_id <> all($3::uuid[]) limit $4
)
limit $4
