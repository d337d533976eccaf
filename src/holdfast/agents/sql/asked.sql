-- Lists the approvals that a run requested in the steps after $3 up to $4. `used`: the call was started again after it was approved.
select a.id, a.step, a.call_id, a.reason, a.state, a.comment, a.reason = 'unknown' and exists (
  select from tool_executions e where e.tenant_id = $1 and e.run_id = $2 and e.step = a.step and e.call_id = a.call_id
    and e.created_at > a.decided_at) as used
from approval a where a.tenant_id = $1 and a.run_id = $2 and a.step > $3 and a.step <= $4
