-- Whether a run waits for a process to take it: nobody has it, or whoever had it was not heard of for a lease.
select state in ('queued', 'running') and (leased_until is null or leased_until <= holdfast.now())
from runs where tenant_id = $1 and id = $2
