-- Returns tenants with at least $1 organizational memories embedded by one model: tenant, model, number of memories, dimensions.
select c.tenant_id, c.model, c.memories, v.dimensions
from (
  select m.tenant_id, m.embedded as model, count(*) as memories from memory m
  where m.scope = 'organization' and m.embedded is not null group by m.tenant_id, m.embedded having count(*) >= $1
) c, lateral (
  select v.dimensions from memory_vector v
  where v.tenant_id = c.tenant_id and v.scope = 'organization' and v.owner = c.tenant_id and v.model = c.model limit 1
) v
