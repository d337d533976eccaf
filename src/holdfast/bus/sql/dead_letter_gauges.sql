-- The number of dead letters per group and topic, of one tenant ($1) or of all, without redriven ones: at most $2 rows, by name.
select tenant.name as tenant, d.group_name as "group", d.topic, count(*) as letters
from dead_letter d join tenant on tenant.id = d.tenant_id
where ($1::uuid is null or d.tenant_id = $1) and d.state = 'dead'
group by tenant.name, d.group_name, d.topic
order by tenant.name, d.group_name, d.topic limit $2
