-- Stores the UUID of a name. A name always has the same UUID, so a second writer changes nothing, whichever unique key they conflict on.
-- A name replaces the UUID that is stored as its own name, because a caller may have passed the UUID in place of the name before.
create or replace function holdfast.store_identity(tenant uuid, of_kind text, given text, known_as uuid) returns void language plpgsql as $$
begin
  insert into public.identity (tenant_id, kind, name, id) values (tenant, of_kind, given, known_as) on conflict do nothing;
  -- A separate statement, so that it sees what a concurrent transaction has just committed.
  update public.identity i set name = given
    where i.tenant_id = tenant and i.kind = of_kind and i.id = known_as and i.name = i.id::text and i.name <> given;
end $$;
revoke execute on function holdfast.store_identity from public;
grant execute on function holdfast.store_identity to holdfast_app;
