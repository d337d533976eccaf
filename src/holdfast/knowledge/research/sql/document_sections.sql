-- The first chunk of each top-level section of documents, for an overview.
select distinct on (c.document_id, c.section[1]) c.document_id, c.section[1] as section, c.chunk_index
from chunk c where c.tenant_id = $1 and c.document_id = any($2) and cardinality(c.section) > 0
order by c.document_id, c.section[1], c.chunk_index
