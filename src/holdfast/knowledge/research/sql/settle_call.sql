-- Stores the answer of a call, and replaces what the call had reserved by what it used. Changes nothing if the lease is lost.
with answered as (
  update research_call c set state = 'done', answer = $5, reason = $6, model = $7, input_tokens = $8, output_tokens = $9, cost = $10,
    answered_at = holdfast.now()
  from research r
  where r.tenant_id = $1 and r.id = $2 and r.epoch = $3 and r.state = 'running'
    and c.tenant_id = $1 and c.research_id = $2 and c.key = $4 and c.state = 'open'
  returning c.reserved, c.reserved_cost
)
update research r set tokens = r.tokens + $8 + $9, cost = r.cost + $10, reserved = r.reserved - answered.reserved,
  reserved_cost = r.reserved_cost - answered.reserved_cost,
  overrun = greatest(r.overrun, r.overrun * ($8 + $9) / greatest(answered.reserved, 1))
from answered where r.tenant_id = $1 and r.id = $2
