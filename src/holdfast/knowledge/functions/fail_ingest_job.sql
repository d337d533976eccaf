-- Ends a job that failed. The former version of the document is still searched. The file and the staged chunks are kept for a retry. Returns whether
-- this epoch still held the job.
create or replace function holdfast.fail_ingest_job(tenant uuid, job uuid, of_epoch int, reason text) returns boolean language plpgsql
set enable_seqscan = off as $$
declare
  document uuid := holdfast.hold_ingest_job(tenant, job, of_epoch);
begin
  if document is null then
    return false;
  end if;
  update public.ingest_job j set state = 'failed', error = reason, holder = null, updated_at = holdfast.now()
  where j.tenant_id = tenant and j.id = job;
  update public.document d set status = 'failed', error = reason where d.tenant_id = tenant and d.id = document;
  perform pg_notify('holdfast_ingested', '');
  return true;
end $$;
revoke execute on function holdfast.fail_ingest_job from public;
grant execute on function holdfast.fail_ingest_job to holdfast_app;
