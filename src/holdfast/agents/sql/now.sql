-- How far a conversation is: its changes so far, and the first run of those that have not ended, or that will be.
select c.revision, coalesce(
  (select r.number from runs r where r.tenant_id = $1 and r.root = $2 and r.finished_at is null order by r.number limit 1),
  c.last_run + 1) as number
from conversation c where c.tenant_id = $1 and c.id = $2
