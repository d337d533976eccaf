-- Ends a request that failed. $5: it counts with what it had reserved, as the model may have charged for it. $6: it was sent, so that it counts as a
-- call.
with failed as (
  update research_call c set reserved = 0, reserved_cost = 0 from research r, research_call former
  where r.tenant_id = $1 and r.id = $2 and r.epoch = $3 and r.state = 'running'
    and former.tenant_id = $1 and former.research_id = $2 and former.key = $4
    and c.tenant_id = $1 and c.research_id = $2 and c.key = $4 and c.state = 'open'
  returning former.reserved, former.reserved_cost
)
update research r set reserved = r.reserved - failed.reserved, reserved_cost = r.reserved_cost - failed.reserved_cost,
  calls = r.calls - case when $6 then 0 else 1 end,
  tokens = r.tokens + case when $5 then failed.reserved else 0 end, cost = r.cost + case when $5 then failed.reserved_cost else 0 end
from failed where r.tenant_id = $1 and r.id = $2
