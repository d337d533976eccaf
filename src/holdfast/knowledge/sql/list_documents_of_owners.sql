-- Returns documents of some owners, newest first: ids grow with time. The index has them in this order for each owner.
select found.* from unnest($2::text[], $3::uuid[]) as o (scope, owner), lateral (
  select d.id, d.scope, d.owner, d.agent_id, d.collection, d.name, d.title, d.source, d.version, d.status, d.error, d.hash, d.media_type, d.size, d.pages, d.chunks,
  d.characters, d.metadata, d.created_at, d.updated_at
  from document d
  where d.tenant_id = $1 and d.scope = o.scope and d.owner = o.owner
    and ($4::text[] is null or d.collection = any($4)) and ($5::text is null or d.status = $5) and d.id < $6
  order by d.id desc limit $7
) found
order by found.id desc limit $7
