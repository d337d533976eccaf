-- Counts uses of memories, many at once. None of the columns is in an index: the row stays in its page.
update memory m
set access_count = least(m.access_count::bigint + u.uses, 2147483647)::int, last_accessed = greatest(m.last_accessed, holdfast.now())
from unnest($2::uuid[], $3::int[]) as u (id, uses)
where m.tenant_id = $1 and m.id = u.id and m.id = any($2::uuid[])
