-- Returns the revision of a conversation, and the number of its first unfinished run, or of its next run if all are finished.
select c.revision, coalesce(
  (select r.number from runs r where r.tenant_id = $1 and r.root = $2 and r.finished_at is null order by r.number limit 1),
  c.last_run + 1) as number
from conversation c where c.tenant_id = $1 and c.id = $2
