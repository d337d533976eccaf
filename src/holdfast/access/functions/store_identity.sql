-- Stores the uuid of a name. The same name always stands for the same uuid, so a second writer changes nothing, whichever key they
-- meet at; but a name goes before the uuid itself, which someone may have given back as a name first.
create or replace function holdfast.store_identity(tenant uuid, of_kind text, given text, known_as uuid) returns void language plpgsql as $$
begin
  insert into public.identity (tenant_id, kind, name, id) values (tenant, of_kind, given, known_as) on conflict do nothing;
  -- A statement of its own, for it must see what a rival has just committed.
  update public.identity i set name = given
    where i.tenant_id = tenant and i.kind = of_kind and i.id = known_as and i.name = i.id::text and i.name <> given;
end $$;
revoke execute on function holdfast.store_identity from public;
grant execute on function holdfast.store_identity to holdfast_app;
