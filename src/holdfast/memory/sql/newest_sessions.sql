-- Sessions that have memories, those with the newest first: each at its newest memory, for ids rise with time. `offset 0` keeps the memories
-- in that order: the planner would read them all and sort.
select walked.owner, walked.place
from (
  select m.owner, m.id as place, (
    select n.id from memory n where n.tenant_id = $1 and n.scope = 'session' and n.owner = m.owner order by n.id desc limit 1
  ) as newest
  from memory m where m.tenant_id = $1 and m.scope = 'session' and m.id < $2 order by m.id desc offset 0
) walked
where walked.place = walked.newest limit $3
