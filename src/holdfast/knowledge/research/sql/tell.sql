-- Tells those who watch a research of its progress, once for each name. The lock on its row gives events numbers without gaps.
with told as (
  update research r set events = r.events + 1
  where r.tenant_id = $1 and r.id = $2 and r.epoch = $3 and not exists (
    select from research_event e where e.tenant_id = $1 and e.research_id = $2 and e.name = $4)
  returning r.events, r.calls, r.tokens, r.cost
)
insert into research_event (tenant_id, research_id, seq, name, kind, data)
select $1, $2, told.events, $4, $5, $6::jsonb || jsonb_build_object('calls', told.calls, 'tokens', told.tokens, 'cost', told.cost) from told
on conflict do nothing
