-- Returns a page of the chunks of a document after `$3`.
select c.id, c.chunk_index, c.section, c.first_page, c.last_page, c.char_start, c.char_end, c.tokens, c.content
from chunk c where c.tenant_id = $1 and c.document_id = $2 and c.chunk_index > $3
order by c.chunk_index limit $4
