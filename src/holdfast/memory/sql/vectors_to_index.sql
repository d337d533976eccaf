-- Returns tenants with at least $1 vectors by one model: of organizational memories, or of chunks. Tenant, what is indexed, model, number of vectors
-- and their dimensions.
select c.tenant_id, 'memory' as indexed, c.model, c.vectors, v.dimensions
from (
  select m.tenant_id, m.embedded as model, count(*) as vectors from memory m
  where m.scope = 'organization' and m.embedded is not null group by m.tenant_id, m.embedded having count(*) >= $1
) c, lateral (
  select v.dimensions from memory_vector v
  where v.tenant_id = c.tenant_id and v.scope = 'organization' and v.owner = c.tenant_id and v.model = c.model limit 1
) v
union all
select v.tenant_id, 'chunk', v.model, count(*), v.dimensions
from chunk_vector v group by v.tenant_id, v.model, v.dimensions having count(*) >= $1
