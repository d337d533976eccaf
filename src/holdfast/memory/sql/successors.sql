-- Follows the supersessions of memories of one owner: returns each memory on the way with its successor.
with recursive led (id, superseded_by) as (
  select m.id, m.superseded_by from memory m
  where m.tenant_id = $1 and m.scope = $2 and m.owner = $3 and m.id = any($4::uuid[]) and m.superseded_by is not null
  union -- without duplicates, so that the recursion ends
  select m.id, m.superseded_by from led
  join memory m on m.tenant_id = $1 and m.scope = $2 and m.owner = $3 and m.id = led.superseded_by
  where m.superseded_by is not null
)
select id, superseded_by from led
