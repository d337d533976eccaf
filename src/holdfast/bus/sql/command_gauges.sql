-- Of each skill, across tenants or of one ($1): commands that wait for a worker or are being done. $2 of them at most, by name.
-- Each state has an index of its own; finished commands are too many to be counted at every look.
select tenant.name as tenant, open.skill, open.state, count(*) as commands
from (
  select c.tenant_id, c.skill, c.state from command c where c.state = 'queued'
  union all
  select c.tenant_id, c.skill, c.state from command c where c.state = 'running'
) open
join tenant on tenant.id = open.tenant_id
where $1::uuid is null or open.tenant_id = $1
group by tenant.name, open.skill, open.state
order by tenant.name, open.skill, open.state limit $2
