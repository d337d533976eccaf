-- Stores what a step found or decided, unless the lease is lost.
insert into research_step (tenant_id, research_id, name, result)
select $1, $2, $4, $5 from research r where r.tenant_id = $1 and r.id = $2 and r.epoch = $3 and r.state = 'running'
on conflict (tenant_id, research_id, name) do nothing
