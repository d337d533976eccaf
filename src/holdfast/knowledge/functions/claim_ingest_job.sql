-- Claims the job that is due for longest, for the length of a lease. Each claim increments the epoch, so that a write of the former holder is rejected.
-- A job that made no progress in `most_attempts` attempts fails: the process died each time. The document is locked first, as everywhere.
-- `first_piece`: of the file; the whole file if it is small.
create or replace function holdfast.claim_ingest_job(tenant uuid, claimant uuid, lease interval, most_attempts int) returns table (
  id uuid, document_id uuid, epoch int, attempts int, "position" bytea, media_type text, size bigint, chunks int, name text, title text,
  is_new boolean, first_piece bytea
) language plpgsql
set enable_seqscan = off as $$
#variable_conflict use_column
declare
  due record;
  found_document record;
  taken public.ingest_job;
begin
  for due in
    select j.id, j.document_id from public.ingest_job j
    where j.tenant_id = tenant and j.state in ('pending', 'running') and j.due_at <= holdfast.now()
    order by j.due_at, j.id limit 32
  loop
    select d.name, d.title, d.title_given, d.version into found_document
    from public.document d where d.tenant_id = tenant and d.id = due.document_id for update skip locked;
    continue when not found;
    update public.ingest_job j set
      state = 'running', holder = claimant, due_at = holdfast.now() + lease, epoch = j.epoch + 1, attempts = j.attempts + 1,
      updated_at = holdfast.now()
    where j.tenant_id = tenant and j.id = due.id and j.state in ('pending', 'running') and j.due_at <= holdfast.now()
    returning j.* into taken;
    continue when not found;
    if taken.attempts > most_attempts then
      perform holdfast.fail_ingest_job(tenant, taken.id, taken.epoch, coalesce(taken.error,
        'the document was given up: the process that ingested it died each time. Check the logs of the servers, then retry the job.'));
      continue;
    end if;
    update public.document d set status = 'running' where d.tenant_id = tenant and d.id = due.document_id;
    id := taken.id;
    document_id := taken.document_id;
    epoch := taken.epoch;
    attempts := taken.attempts;
    "position" := taken.position;
    media_type := taken.media_type;
    size := taken.size;
    chunks := taken.chunks;
    is_new := found_document.version = 0;
    name := found_document.name;
    title := case when found_document.title_given then found_document.title end;
    select u.bytes into first_piece from public.ingest_upload u where u.tenant_id = tenant and u.job_id = taken.id and u.piece = 0;
    return next;
    return;
  end loop;
end $$;
revoke execute on function holdfast.claim_ingest_job from public;
grant execute on function holdfast.claim_ingest_job to holdfast_app;
