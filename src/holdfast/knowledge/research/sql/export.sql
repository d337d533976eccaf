-- Research of a user with its events, oldest first, for an export.
select r.*, (select coalesce(jsonb_agg(jsonb_build_object('seq', e.seq, 'kind', e.kind, 'at', e.at, 'data', e.data) order by e.seq), '[]')
  from research_event e where e.tenant_id = $1 and e.research_id = r.id) as told
from research r where r.tenant_id = $1 and r.user_name = $2 and r.id > $3 order by r.id limit $4
