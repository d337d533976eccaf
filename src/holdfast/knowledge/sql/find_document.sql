-- Returns the document of a name in a collection of an owner.
select d.id, d.scope, d.owner, d.agent_id, d.collection, d.name, d.title, d.source, d.version, d.status, d.error, d.hash, d.media_type, d.size, d.pages, d.chunks,
  d.characters, d.metadata, d.created_at, d.updated_at
from document d where d.tenant_id = $1 and d.scope = $2 and d.owner = $3 and d.collection = $4 and d.name = $5
