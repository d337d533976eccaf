-- Lists the deltas of conversations, each after a number, with the current revision of the conversation: a watcher that has not seen all of its
-- changes reads those first.
select d.root, d.n, d.run_id, d.kind, d.data, d.at, c.revision
from unnest($2::uuid[], $3::bigint[]) as asked (root, n)
cross join lateral (
  select * from turn_delta d where d.tenant_id = $1 and d.root = asked.root and d.n > asked.n order by d.n limit 1000
) d
join conversation c on c.tenant_id = $1 and c.id = d.root
order by d.root, d.n
