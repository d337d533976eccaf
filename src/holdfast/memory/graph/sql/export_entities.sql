-- Returns entities of an owner in the order of their ids, after a given one, with the memories that name each.
select e.id, e.key, e.name, e.type, e.description, e.merged_into, e.created_at,
  array(select l.memory_id from memory_entities l where l.tenant_id = $1 and l.entity_id = e.id order by l.memory_id) as memories,
  array(select l.mentions from memory_entities l where l.tenant_id = $1 and l.entity_id = e.id order by l.memory_id) as counts
from entities e where e.tenant_id = $1 and e.scope = $2 and e.owner = $3 and e.id > $4
order by e.id limit $5
