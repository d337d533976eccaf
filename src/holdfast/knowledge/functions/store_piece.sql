-- Stores a piece of a file that is being uploaded. The first piece begins the upload. An upload that was swept cannot go on.
create or replace function holdfast.store_piece(tenant uuid, job uuid, number int, content bytea) returns void language plpgsql
set enable_seqscan = off as $$
begin
  if number = 0 then
    insert into public.ingest_job (tenant_id, id, state) values (tenant, job, 'uploading');
  else
    update public.ingest_job j set updated_at = holdfast.now() where j.tenant_id = tenant and j.id = job and j.state = 'uploading';
    if not found then
      raise no_data_found using message = 'the upload was given up', detail = 'It took too long between two pieces.', hint = 'Add the file again.';
    end if;
  end if;
  insert into public.ingest_upload (tenant_id, job_id, piece, bytes) values (tenant, job, number, content);
end $$;
revoke execute on function holdfast.store_piece from public;
grant execute on function holdfast.store_piece to holdfast_app;
