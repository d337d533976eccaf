-- Returns whether the document of a chunk has the metadata, and is in one of the collections (null for all).
select d.metadata @> $3 as has_metadata, $4::text[] is null or d.collection = any($4) as in_collections
from chunk c join document d on d.tenant_id = $1 and d.id = c.document_id
where c.tenant_id = $1 and c.id = $2
