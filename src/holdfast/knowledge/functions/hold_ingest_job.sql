-- Locks the document of a job, and the job, if this epoch still holds it. Returns the document; null if the job was superseded, removed or taken over.
create or replace function holdfast.hold_ingest_job(tenant uuid, job uuid, of_epoch int) returns uuid language plpgsql
set enable_seqscan = off as $$
declare
  document uuid;
begin
  select j.document_id into document from public.ingest_job j where j.tenant_id = tenant and j.id = job;
  perform from public.document d where d.tenant_id = tenant and d.id = document for update;
  perform from public.ingest_job j where j.tenant_id = tenant and j.id = job and j.epoch = of_epoch and j.state = 'running' for update;
  return case when found then document end;
end $$;
revoke execute on function holdfast.hold_ingest_job from public;
grant execute on function holdfast.hold_ingest_job to holdfast_app;
