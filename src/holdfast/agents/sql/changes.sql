-- Lists the nodes of a conversation that changed after a revision, in order, with the current revision. One statement, so that everything is from one
-- snapshot.
-- Revisions are complete: if the last one changed several nodes, all of them are returned.
select c.revision as current,
  (select count(*) from runs r where r.tenant_id = $1 and r.root = $2 and r.finished_at is null) as unfinished, n.*
from conversation c left join lateral (
  select id, root, parent, seq, context_type, context_name, context_value, content, payload, state, key,
    version, revision, deleted, created_at, updated_at, form, null as native
  from node where tenant_id = $1 and root = $2 and seq > 0 and revision > $3 order by revision fetch first $4 rows with ties
) n on true
where c.tenant_id = $1 and c.id = $2 order by n.revision, n.seq
