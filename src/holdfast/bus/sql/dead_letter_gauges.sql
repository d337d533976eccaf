-- Of each group and topic, across tenants or of one ($1): dead letters that wait for somebody. $2 of them at most, by name.
select tenant.name as tenant, d.group_name as "group", d.topic, count(*) as letters
from dead_letter d join tenant on tenant.id = d.tenant_id
where ($1::uuid is null or d.tenant_id = $1) and d.state = 'dead'
group by tenant.name, d.group_name, d.topic
order by tenant.name, d.group_name, d.topic limit $2
