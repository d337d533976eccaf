-- Returns a chunk of a document as a memory, and the name of the document.
select c.id, d.scope, d.owner, d.agent_id, null::uuid as user_id, c.content, 'knowledge' as type, 1.0::float8 as importance, 'user' as trust,
  d.metadata, coalesce(d.source, d.name) as source, null as key, null as conversation, null::bigint as seq, null as author,
  null::timestamptz as said_at, d.created_at, d.created_at as valid_from, 'infinity'::timestamptz as valid_to,
  'infinity'::timestamptz as expires_at, null::uuid as superseded_by, false as pinned, null::timestamptz as buried_at, c.embedded,
  0 as access_count, d.updated_at as last_accessed, greatest(d.version, 1) as version, d.name, d.id as document_id
from chunk c join document d on d.tenant_id = $1 and d.id = c.document_id
where c.tenant_id = $1 and c.id = $2
