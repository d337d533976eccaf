-- Adds to the use counts of memories, in a batch. No index contains the changed columns, so the rows stay in their pages (HOT updates). The
-- rows are locked in the order of their ids first, to avoid deadlocks: an update alone locks them in the order of its plan.
with held as materialized (
  select id from memory where tenant_id = $1 and id = any($2::uuid[]) order by id for update
)
update memory m
set access_count = least(m.access_count::bigint + u.uses, 2147483647)::int, last_accessed = greatest(m.last_accessed, holdfast.now())
from held join unnest($2::uuid[], $3::int[]) as u (id, uses) on u.id = held.id
where m.tenant_id = $1 and m.id = held.id
