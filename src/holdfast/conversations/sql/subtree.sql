-- A node that is not a root, and all nodes below it. Siblings are ordered by place.
-- A lateral subquery reads the children of each node: with a join, a table without statistics would be read completely at every level.
with recursive tree as (
  select id, parent, seq, place from node where tenant_id = $1 and id = $2 and not deleted
  union all
  select child.* from tree cross join lateral (
    select id, parent, seq, place from node
    where tenant_id = $1 and node.parent = tree.id and node.parent <> node.root and not node.deleted offset 0
  ) child
)
select * from tree limit $3
