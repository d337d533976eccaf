-- Deletes the terms and vectors of skills and tools that plain SQL has deleted.
with postings as (
  delete from registry_term x where x.host_id = $1
    and not exists (select from skill_t s where s.host_id = $1 and s.skill_id = x.id and x.kind = 'skill')
    and not exists (select from tool_t t where t.host_id = $1 and t.tool_id = x.id and x.kind = 'tool')
)
delete from registry_vector v where v.host_id = $1
  and not exists (select from skill_t s where s.host_id = $1 and s.skill_id = v.id and v.kind = 'skill')
  and not exists (select from tool_t t where t.host_id = $1 and t.tool_id = v.id and v.kind = 'tool')
