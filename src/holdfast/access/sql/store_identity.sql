-- The same name always stands for the same uuid, so a second writer changes nothing; but a name goes before the
-- uuid itself, which someone may have given back as a name first.
insert into identity (tenant_id, kind, name, id) values ($1, $2, $3, $4)
on conflict (tenant_id, kind, id) do update set name = excluded.name
where identity.name = identity.id::text and excluded.name <> identity.name
