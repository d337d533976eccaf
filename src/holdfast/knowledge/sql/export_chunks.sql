-- Returns a page of the chunks of a document after `$3`, with their vectors if `$4`.
select c.*, case when $4 then array(
    select v.embedding from chunk_vector v
    where v.tenant_id = $1 and v.document_id = $2 and v.chunk_index = c.chunk_index and v.model = c.embedded order by v.passage
  ) end as vectors
from chunk c where c.tenant_id = $1 and c.document_id = $2 and c.chunk_index > $3
order by c.chunk_index limit $5
