-- Returns sessions that have memories, ordered by their newest memory, newest first: ids grow with time. `offset 0` keeps the planner from
-- reading all memories and sorting them.
select walked.owner, walked.place
from (
  select m.owner, m.id as place, (
    select n.id from memory n where n.tenant_id = $1 and n.scope = 'session' and n.owner = m.owner order by n.id desc limit 1
  ) as newest
  from memory m where m.tenant_id = $1 and m.scope = 'session' and m.id < $2 order by m.id desc offset 0
) walked
where walked.place = walked.newest limit $3
