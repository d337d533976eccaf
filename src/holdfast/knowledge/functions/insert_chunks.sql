-- Makes staged chunks of a job chunks of its document, with their vectors and entities: those from `first` to `last`.
create or replace function holdfast.insert_chunks(tenant uuid, job uuid, document uuid, first int, last int) returns void language plpgsql
set enable_seqscan = off as $$
declare
  whose record;
  named json;
begin
  insert into public.chunk (
    tenant_id, document_id, chunk_index, id, first_page, last_page, char_start, char_end, tokens, length, language, embedded, digest, passages,
    section, marks, after, content)
  select tenant, document, s.chunk_index, s.id, s.first_page, s.last_page, s.char_start, s.char_end, s.tokens, s.length, s.language, s.model,
    s.digest, s.passages, s.section, s.marks, s.after, s.content
  from public.ingest_chunk s
  where s.tenant_id = tenant and s.job_id = job and s.chunk_index between first and last
  order by s.chunk_index
  on conflict do nothing;
  insert into public.chunk_vector (tenant_id, document_id, chunk_index, passage, dimensions, model, embedding)
  select tenant, document, s.chunk_index, v.place - 1, vector_dims(v.embedding), s.model, v.embedding
  from public.ingest_chunk s, unnest(s.vectors) with ordinality as v (embedding, place)
  where s.tenant_id = tenant and s.job_id = job and s.chunk_index between first and last
  on conflict do nothing;
  select json_agg(json_strip_nulls(
    json_build_object('memory', s.id, 'entities', s.entities -> 'entities', 'relations', s.entities -> 'relations'))) into named
  from public.ingest_chunk s
  where s.tenant_id = tenant and s.job_id = job and s.chunk_index between first and last and s.entities is not null;
  if named is not null then
    select d.scope, d.owner into whose from public.document d where d.tenant_id = tenant and d.id = document;
    perform holdfast.link_entities(tenant, whose.scope, whose.owner, document, named);
  end if;
end $$;
revoke execute on function holdfast.insert_chunks from public;
grant execute on function holdfast.insert_chunks to holdfast_app;
