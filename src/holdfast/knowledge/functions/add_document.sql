-- Makes or changes a document, and makes a job of its new version, which supersedes jobs that have not ended. Returns the document and the job.
--
-- Without a change of the content there is no job, and an open job for the same content goes on. What the caller says about the document counts at
-- once; null leaves a column as it is. `uploaded` pieces of the file are there already, stored under `new_job`; `pieces` are the rest.
create or replace function holdfast.add_document(
  tenant uuid, new_job uuid, in_scope text, of_owner uuid, in_collection text, of_name text, by_agent uuid,
  about jsonb, new_title text, new_key text, new_source text, new_type text,
  new_hash bytea, new_size bigint, new_splitting text, uploaded int, pieces bytea[]
) returns table (job_id uuid, stored public.document) language plpgsql
set enable_seqscan = off as $$
#variable_conflict use_column
begin
  insert into public.document as d (tenant_id, scope, owner, collection, name, agent_id, metadata, title, title_key, title_given, source)
  values (tenant, in_scope, of_owner, in_collection, of_name, by_agent, coalesce(about, '{}'), new_title, new_key, new_title is not null, new_source)
  on conflict (tenant_id, scope, owner, collection, name) do update set
    agent_id = coalesce(by_agent, d.agent_id), metadata = coalesce(about, d.metadata), title = coalesce(new_title, d.title),
    title_key = case when new_title is null then d.title_key else new_key end, title_given = d.title_given or new_title is not null,
    source = coalesce(new_source, d.source), updated_at = excluded.updated_at
  returning d.* into stored;
  if stored.hash = new_hash and stored.splitting = new_splitting then
    delete from public.ingest_job j where j.tenant_id = tenant and j.id = new_job;
    perform holdfast.supersede_jobs(tenant, stored.id);
    update public.document d set status = 'ready', error = null where d.tenant_id = tenant and d.id = stored.id returning d.* into stored;
    return next;
    return;
  end if;
  select j.id into job_id from public.ingest_job j
  where j.tenant_id = tenant and j.document_id = stored.id and j.state in ('pending', 'running') and j.hash = new_hash
    and j.splitting = new_splitting;
  if found then
    delete from public.ingest_job j where j.tenant_id = tenant and j.id = new_job;
    return next;
    return;
  end if;
  delete from public.ingest_job j where j.tenant_id = tenant and j.document_id = stored.id and j.state in ('done', 'failed', 'superseded');
  perform holdfast.supersede_jobs(tenant, stored.id);
  if uploaded > 0 then
    update public.ingest_job j set
      document_id = stored.id, hash = new_hash, splitting = new_splitting, size = new_size, media_type = new_type, state = 'pending',
      due_at = holdfast.now(), updated_at = holdfast.now()
    where j.tenant_id = tenant and j.id = new_job and j.state = 'uploading';
    if not found then
      raise no_data_found using message = 'the upload was given up', detail = 'It took too long between two pieces.', hint = 'Add the file again.';
    end if;
  else
    insert into public.ingest_job (tenant_id, id, document_id, hash, splitting, size, media_type)
    values (tenant, new_job, stored.id, new_hash, new_splitting, new_size, new_type);
  end if;
  insert into public.ingest_upload (tenant_id, job_id, piece, bytes)
  select tenant, new_job, uploaded + p.place::int - 1, p.bytes from unnest(pieces) with ordinality as p (bytes, place)
  on conflict do nothing;
  update public.document d set status = 'pending', error = null where d.tenant_id = tenant and d.id = stored.id returning d.* into stored;
  perform pg_notify('holdfast_ingest', '');
  job_id := new_job;
  return next;
end $$;
revoke execute on function holdfast.add_document from public;
grant execute on function holdfast.add_document to holdfast_app;
