-- Returns chunks of a language without a vector of its model; if `$3` is null, without any vector. `$4`: chunks that the model refused recently, which
-- are left out.
select c.id, c.document_id, c.chunk_index, c.digest, c.passages, c.section, c.content,
  (select d.title from document d where d.tenant_id = $1 and d.id = c.document_id) as title
from chunk c
where c.tenant_id = $1 and c.language = $2 and (c.embedded is null or c.embedded < $3 or c.embedded > $3) and c.id <> all($4::uuid[])
limit $5
