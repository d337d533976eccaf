-- The numbers of queued and running commands per skill, of one tenant ($1) or of all: at most $2 rows, by name.
-- Each of the two states has its own index. Finished commands are too many to count them at every query.
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
