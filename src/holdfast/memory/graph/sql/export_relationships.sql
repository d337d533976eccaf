-- Returns the relationships that start at these entities, with the memories that state each.
select r.source_id, r.target_id, r.relation_type, r.weight, r.description,
  array(
    select s.memory_id from relationship_sources s
    where s.tenant_id = $1 and s.source_id = r.source_id and s.target_id = r.target_id and s.relation_type = r.relation_type
    order by s.memory_id) as memories
from relationships r where r.tenant_id = $1 and r.source_id = any($2)
order by r.source_id, r.target_id, r.relation_type
