-- Returns a merge and whose entities it joins.
select m.id, m.keep_id, m.other_id, m.memory_id, e.scope, e.owner, m.created_at, m.undone_at
from entity_merges m join entities e on e.tenant_id = $1 and e.id = m.keep_id
where m.tenant_id = $1 and m.id = $2
