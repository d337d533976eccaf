-- Adds an entry and takes it back. A role that may not add entries, a read-only database or a full disk raises its error.
create or replace function holdfast.probe_audit(tenant uuid) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  insert into public.audit_open (tenant_id, id, entry) values (tenant, gen_random_uuid(), '{}');
  raise sqlstate 'HF000';
exception when sqlstate 'HF000' then
  null;
end $$;
revoke execute on function holdfast.probe_audit from public;
grant execute on function holdfast.probe_audit to holdfast_app;
