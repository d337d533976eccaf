-- Deletes entities that nothing names any more: those whose document was deleted, or that were locked when their last memory was. Of the entities
-- after a given id, looks at the next few thousand, and returns the last.
with looked as materialized (
  select e.id from entities e where e.tenant_id = $1 and e.id > $2 order by e.id limit $3
)
select max(l.id::text)::uuid as last,
  holdfast.delete_unnamed($1, array(
    select n.id from looked n where not exists (select from memory_entities m where m.tenant_id = $1 and m.entity_id = n.id))) as deleted
from looked l
