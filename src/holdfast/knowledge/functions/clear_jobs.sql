-- Deletes the files and the staged chunks of jobs.
create or replace function holdfast.clear_jobs(tenant uuid, jobs uuid[]) returns void language plpgsql
set enable_seqscan = off as $$
begin
  delete from public.ingest_upload u where u.tenant_id = tenant and u.job_id = any(jobs);
  delete from public.ingest_chunk c where c.tenant_id = tenant and c.job_id = any(jobs);
end $$;
revoke execute on function holdfast.clear_jobs from public;
grant execute on function holdfast.clear_jobs to holdfast_app;
