-- Returns documents of all owners, newest first: ids grow with time.
select d.id, d.scope, d.owner, d.agent_id, d.collection, d.name, d.title, d.source, d.version, d.status, d.error, d.hash, d.media_type, d.size, d.pages, d.chunks,
  d.characters, d.metadata, d.created_at, d.updated_at
from document d
where d.tenant_id = $1 and ($2::text[] is null or d.collection = any($2)) and ($3::text is null or d.status = $3) and d.id < $4
order by d.id desc limit $5
