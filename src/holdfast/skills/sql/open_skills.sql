-- The instructions of skills ($2), and tools ($3) with everything that a call needs, if they are still active, and the registry's revision. With a
-- conversation ($4), stores that the agent ($5) has loaded the skills $6 in it: the skill loaded last is the newest, and takes precedence when space
-- is short. All in one round trip, because a model waits.
with noted as (
  insert into conversation_skill (tenant_id, root, agent, skill_id)
  select $1, $4, $5, s.skill_id from skill_t s
  where s.host_id = $1 and s.skill_id = any($6::uuid[]) and s.active and $4::uuid is not null
  on conflict (tenant_id, root, agent, skill_id) do update set loaded_at = excluded.loaded_at
  returning skill_id
)
select coalesce((select r.revision from registry r where r.host_id = $1), 0) as revision,
  (
    select coalesce(jsonb_object_agg(s.skill_id, s.content_markdown), '{}') from skill_t s
    where s.host_id = $1 and s.skill_id = any($2::uuid[]) and s.active
  ) as instructions,
  (
    select coalesce(jsonb_agg(e.told), '[]') from holdfast.tool_entries e
    where e.host_id = $1 and e.tool_id = any($3::uuid[]) and e.active
  ) as tools
from (select count(*) from noted) as after
