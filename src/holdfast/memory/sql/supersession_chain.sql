-- Returns the chain of supersessions of a memory: all its predecessors and successors. A memory has at most one successor, and can supersede several.
with recursive linked (id, superseded_by) as (
  select m.id, m.superseded_by from memory m where m.tenant_id = $1 and m.scope = $2 and m.owner = $3 and m.id = $4
  union -- without duplicates, so that the recursion ends
  select m.id, m.superseded_by from linked
  cross join lateral (
    select before.id, before.superseded_by from memory before
    where before.tenant_id = $1 and before.scope = $2 and before.owner = $3 and before.superseded_by = linked.id
    union all
    select after.id, after.superseded_by from memory after
    where after.tenant_id = $1 and after.scope = $2 and after.owner = $3 and after.id = linked.superseded_by
  ) m
), counted as (
  select id from linked limit $5
)
select m.id, m.scope, m.owner, m.agent_id, m.user_id, m.content, m.type, m.importance, m.trust, m.metadata, m.source, m.key, m.conversation,
  m.seq, m.author, m.said_at, m.created_at, m.valid_from, m.valid_to, m.expires_at, m.superseded_by, m.pinned, m.buried_at, m.embedded,
  m.access_count, m.last_accessed, m.version
from counted
join memory m on m.tenant_id = $1 and m.scope = $2 and m.owner = $3 and m.id = counted.id
order by m.valid_from, m.id
