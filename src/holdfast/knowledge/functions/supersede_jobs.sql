-- Ends the open jobs of a document in favour of another version.
create or replace function holdfast.supersede_jobs(tenant uuid, of_document uuid) returns void language plpgsql
set enable_seqscan = off as $$
declare
  ended uuid[];
begin
  with superseded as (
    update public.ingest_job j set
      state = 'superseded', holder = null, position = null, epoch = j.epoch + 1, updated_at = holdfast.now()
    where j.tenant_id = tenant and j.document_id = of_document and j.state in ('pending', 'running')
    returning j.id
  )
  select array_agg(s.id) into ended from superseded s;
  if ended is not null then
    perform holdfast.clear_jobs(tenant, ended);
    perform pg_notify('holdfast_ingested', '');
  end if;
end $$;
revoke execute on function holdfast.supersede_jobs from public;
grant execute on function holdfast.supersede_jobs to holdfast_app;
