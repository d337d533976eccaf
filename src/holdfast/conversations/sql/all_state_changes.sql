-- The changes of state in a conversation after a revision, in order. A change with a node has the first revision of the node, because each
-- edit gives the node a later one. Changes without a node are in state_change.
select change.seq, change.revision, change.at, change.state
from (
  (
    select n.seq, first.revision, n.created_at as at, n.state
    from node n, lateral (
      select coalesce(min(r.revision), n.revision) as revision from node_revision r
      where n.version > 1 and r.tenant_id = $1 and r.node_id = n.id
    ) first
    where n.tenant_id = $1 and n.root = $2 and n.state is not null and n.revision > $3 and first.revision > $3
    order by n.seq limit $4
  )
  union all
  (select seq, revision, created_at, state from state_change where tenant_id = $1 and root = $2 and revision > $3 order by revision limit $4)
) change
order by change.revision limit $4
