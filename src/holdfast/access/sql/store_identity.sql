-- The same name always stands for the same uuid, so a second writer changes nothing.
insert into identity (tenant_id, kind, name, id) values ($1, $2, $3, $4) on conflict do nothing
