-- Returns the beginning of memories and of chunks of documents, with the place of the chunk in its document.
select m.id, null::uuid as document_id, null::text as name, null::text as title, null::int as chunk_index, null::int as first_page,
  null::int as last_page, null::bigint as char_start, null::bigint as char_end, null::text[] as section, left(m.content, $3) as text, m.created_at
from memory m where m.tenant_id = $1 and m.id = any($2)
union all
select c.id, c.document_id, d.name, d.title, c.chunk_index, c.first_page, c.last_page, c.char_start, c.char_end, c.section,
  left(c.content, $3), d.updated_at
from chunk c join document d on d.tenant_id = $1 and d.id = c.document_id
where c.tenant_id = $1 and c.id = any($2)
