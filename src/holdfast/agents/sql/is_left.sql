-- Returns whether a run waits for a process to take it: it has no holder, or its lease has expired.
select state in ('queued', 'running') and (leased_until is null or leased_until <= holdfast.now())
from runs where tenant_id = $1 and id = $2
