-- Returns the documents of a name, newest first: of all owners or of some, in all collections or in some, in all states or in one.
select d.id, d.scope, d.owner, d.agent_id, d.collection, d.name, d.title, d.source, d.version, d.status, d.error, d.hash, d.media_type, d.size, d.pages, d.chunks,
  d.characters, d.metadata, d.created_at, d.updated_at
from document d
where d.tenant_id = $1 and d.name = $2 and ($5::text[] is null or d.collection = any($5)) and d.id < $6
  and ($8::text is null or d.status = $8)
  and ($3::text[] is null or (d.scope, d.owner) in (select o.scope, o.owner from unnest($3, $4::uuid[]) as o (scope, owner)))
order by d.id desc limit $7
