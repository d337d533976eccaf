-- Runs a failed job again, from where it was. Returns its id; null if it has not failed.
create or replace function holdfast.retry_job(tenant uuid, job uuid) returns uuid language plpgsql
set enable_seqscan = off as $$
declare
  of_document uuid;
begin
  select j.document_id into of_document from public.ingest_job j where j.tenant_id = tenant and j.id = job;
  perform from public.document d where d.tenant_id = tenant and d.id = of_document for update;
  update public.ingest_job j set
    state = 'pending', attempts = 0, error = null, epoch = j.epoch + 1, due_at = holdfast.now(), updated_at = holdfast.now()
  where j.tenant_id = tenant and j.id = job and j.state = 'failed';
  if not found then
    return null;
  end if;
  update public.document d set status = 'pending', error = null where d.tenant_id = tenant and d.id = of_document;
  perform pg_notify('holdfast_ingest', '');
  return job;
end $$;
revoke execute on function holdfast.retry_job from public;
grant execute on function holdfast.retry_job to holdfast_app;
