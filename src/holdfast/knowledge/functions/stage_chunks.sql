-- Stores the next chunks of a job, and how far it is. Returns false, and stores nothing, if this epoch does not hold the job any more.
--
-- `items` has the small columns of each chunk, in the order of `contents`. `all_terms` and `all_vectors` are those of all chunks, one after the other;
-- an item says where its own are. `reuses`: the vectors are those of an equal chunk, of this job or of the document's current version.
create or replace function holdfast.stage_chunks(
  tenant uuid, job uuid, of_epoch int, items json, contents text[], all_terms bigint[], all_vectors halfvec[],
  new_position bytea, new_units int, new_total int, new_characters bigint, new_pages int, new_title text, new_type text
) returns boolean language plpgsql
set enable_seqscan = off as $$
#variable_conflict use_column
declare
  document uuid;
  staged int;
  vectored int;
begin
  update public.ingest_job j set
    attempts = case when new_units > j.units or cardinality(contents) > 0 then 0 else j.attempts end, position = new_position, units = new_units, total_units = new_total, characters = new_characters, pages = new_pages, title = new_title,
    found_type = new_type, error = null, updated_at = holdfast.now()
  where j.tenant_id = tenant and j.id = job and j.epoch = of_epoch and j.state = 'running'
  returning j.document_id into document;
  if not found then
    return false;
  end if;
  if cardinality(contents) = 0 then
    return true;
  end if;
  with given as materialized (
    select i.*, g.content
    from json_to_recordset(items) as i (
      place int, chunk_index int, first_page int, last_page int, char_start bigint, char_end bigint, tokens int, length int, language text,
      model text, digest uuid, passages int[], section text[], marks json, after text, entities json,
      terms_from int, terms_to int, vectors_from int, vectors_to int, reuses boolean)
    join unnest(contents) with ordinality as g (content, place) on g.place = i.place
  ), found as (
    select g.*, case
      when not g.reuses then all_vectors[g.vectors_from:g.vectors_to]
      else coalesce(
        (select s.vectors from public.ingest_chunk s
         where s.tenant_id = tenant and s.job_id = job and s.digest = g.digest and s.model = g.model and s.vectors is not null limit 1),
        (select array_agg(v.embedding order by v.passage) from public.chunk_vector v
         where v.tenant_id = tenant and v.document_id = document and v.model = g.model and v.chunk_index = (
           select c.chunk_index from public.chunk c
           where c.tenant_id = tenant and c.document_id = document and c.digest = g.digest and c.embedded = g.model limit 1)))
      end as vectors
    from given g
  ), added as (
    insert into public.ingest_chunk (
      tenant_id, job_id, chunk_index, first_page, last_page, char_start, char_end, tokens, length, language, model, digest, passages, section,
      marks, after, content, terms, entities, vectors)
    select tenant, job, f.chunk_index, f.first_page, f.last_page, f.char_start, f.char_end, f.tokens, f.length, f.language,
      case when cardinality(f.vectors) = cardinality(f.passages) / 2 then f.model end, f.digest, f.passages, f.section, f.marks, f.after, f.content,
      all_terms[f.terms_from:f.terms_to], f.entities,
      case when cardinality(f.vectors) = cardinality(f.passages) / 2 then f.vectors end
    from found f
    returning model
  )
  select count(*), count(a.model) into staged, vectored from added a;
  update public.ingest_job j set chunks = j.chunks + staged, embedded = j.embedded + vectored where j.tenant_id = tenant and j.id = job;
  return true;
end $$;
revoke execute on function holdfast.stage_chunks from public;
grant execute on function holdfast.stage_chunks to holdfast_app;
