-- Deletes the personal data of entries in which a user is the caller or the actor, and returns of how many. The chain is unchanged: it covers
-- only hashes of them. It has the rights of its owner, because the application can delete nothing in the audit otherwise.
create or replace function holdfast.erase_audit(tenant uuid, "user" text) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  erased bigint;
begin
  if tenant is distinct from current_setting('holdfast.tenant')::uuid then
    raise insufficient_privilege using message = 'a tenant can only erase in its own audit';
  end if;
  delete from public.audit_person p where p.tenant_id = tenant and (p.user_name = "user" or p.actor = "user");
  get diagnostics erased = row_count;
  return erased;
end $$;
revoke execute on function holdfast.erase_audit from public;
grant execute on function holdfast.erase_audit to holdfast_app;
