-- Returns the document if it is ready, has the same content, and what the caller says about it is known: then there is nothing to do.
select d.id, d.scope, d.owner, d.agent_id, d.collection, d.name, d.title, d.source, d.version, d.status, d.error, d.hash, d.media_type, d.size, d.pages, d.chunks,
  d.characters, d.metadata, d.created_at, d.updated_at
from document d
where d.tenant_id = $1 and d.scope = $2 and d.owner = $3 and d.collection = $4 and d.name = $5
  and d.status = 'ready' and d.hash = $6 and d.splitting = $7
  and d.metadata = coalesce($8::jsonb, d.metadata) and ($9::text is null or d.title = $9 and d.title_key is not distinct from $10)
  and ($11::text is null or d.source = $11)
