-- Stores which words occur in which chunks of a document: those words that belong to `part` of `parts`, so that a long document needs no long statement.
create or replace function holdfast.insert_chunk_terms(tenant uuid, job uuid, document uuid, part int, parts int) returns void language plpgsql
set enable_seqscan = off set jit = off as $$
begin
  insert into public.chunk_term (tenant_id, term, document_id, chunks)
  select tenant, t.term, document, array_agg(s.chunk_index order by s.chunk_index)
  from public.ingest_chunk s, unnest(s.terms) as t (term)
  where s.tenant_id = tenant and s.job_id = job and (parts = 1 or abs(t.term % parts) = part)
  group by t.term
  on conflict do nothing;
end $$;
revoke execute on function holdfast.insert_chunk_terms from public;
grant execute on function holdfast.insert_chunk_terms to holdfast_app;
