-- Returns the owners that have memories in a scope, ordered by id. A skip scan: one index lookup per owner, however
-- many memories it has.
with recursive holder (owner) as (
  (select m.owner from memory m where m.tenant_id = $1 and m.scope = $2 and m.owner > $3 order by m.owner limit 1)
  union all
  select next.owner from holder h, lateral (
    select m.owner from memory m where m.tenant_id = $1 and m.scope = $2 and m.owner > h.owner order by m.owner limit 1
  ) next
)
select owner, owner as place from holder limit $4
