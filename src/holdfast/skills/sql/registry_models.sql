-- The models of the vectors of skills and tools. Takes a few index lookups, independent of the number of vectors.
with recursive of_skills (model) as (
  select min(s.embedded) from skill_t s where s.host_id = $1 and s.embedded > ''
  union all
  select (select min(s.embedded) from skill_t s where s.host_id = $1 and s.embedded > k.model) from of_skills k where k.model is not null
), of_tools (model) as (
  select min(t.embedded) from tool_t t where t.host_id = $1 and t.embedded > ''
  union all
  select (select min(t.embedded) from tool_t t where t.host_id = $1 and t.embedded > k.model) from of_tools k where k.model is not null
)
select model from of_skills where model is not null union select model from of_tools where model is not null
