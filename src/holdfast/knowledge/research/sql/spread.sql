-- Every $6th chunk of the documents that a research may read: a look at all parts of a text that is too long to be read whole.
select c.id, c.document_id, c.chunk_index, c.tokens from chunk c join document d on d.tenant_id = $1 and d.id = c.document_id
where c.tenant_id = $1 and d.tenant_id = $1 and (d.scope, d.owner) in (select * from unnest($2::text[], $3::uuid[]))
  and ($4::text[] is null or d.collection = any($4)) and ($5::uuid[] is null or d.id = any($5)) and c.chunk_index % $6 = 0
order by c.document_id, c.chunk_index limit $7
