-- Gives a job back, to be continued after a pause. Without a reason, the attempt does not count: the process closes. Returns whether this epoch still
-- held the job.
create or replace function holdfast.release_ingest_job(tenant uuid, job uuid, of_epoch int, pause interval, reason text) returns boolean
language plpgsql
set enable_seqscan = off as $$
declare
  document uuid := holdfast.hold_ingest_job(tenant, job, of_epoch);
begin
  if document is null then
    return false;
  end if;
  update public.ingest_job j set
    state = 'pending', holder = null, due_at = holdfast.now() + pause, error = reason, updated_at = holdfast.now(),
    attempts = case when reason is null then greatest(j.attempts - 1, 0) else j.attempts end
  where j.tenant_id = tenant and j.id = job;
  update public.document d set status = 'pending' where d.tenant_id = tenant and d.id = document;
  perform pg_notify('holdfast_ingest', '');
  return true;
end $$;
revoke execute on function holdfast.release_ingest_job from public;
grant execute on function holdfast.release_ingest_job to holdfast_app;
