-- A node that is no root, and all below it; the order of siblings comes from their places.
-- The children of each node are asked for by themselves: joined, a table without statistics would be read whole at every level.
with recursive tree as (
  select id, parent, seq, place from node where tenant_id = $1 and id = $2 and not deleted
  union all
  select child.* from tree cross join lateral (
    select id, parent, seq, place from node
    where tenant_id = $1 and node.parent = tree.id and node.parent <> node.root and not node.deleted offset 0
  ) child
)
select * from tree limit $3
