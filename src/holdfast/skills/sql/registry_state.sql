-- The registry's revision, and the skills that an agent has loaded in a conversation, in order: all that each turn has to read.
select coalesce((select r.revision from registry r where r.host_id = $1), 0) as revision, array(
  select l.skill_id from conversation_skill l
  where l.tenant_id = $1 and l.root = $2 and l.agent = $3 order by l.loaded_at, l.skill_id
) as loaded
