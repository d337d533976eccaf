-- The same name always stands for the same uuid, so a second writer changes nothing, whichever key they meet at; but a name
-- goes before the uuid itself, which someone may have given back as a name first.
with stored as (
  insert into identity (tenant_id, kind, name, id) values ($1, $2, $3, $4)
  on conflict do nothing
)
update identity set name = $3
where tenant_id = $1 and kind = $2 and id = $4 and name = id::text and name <> $3
