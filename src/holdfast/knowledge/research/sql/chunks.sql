-- Chunks with what a citation of them says. `d.version`: of the document when the chunk was read.
select c.id, c.document_id, c.chunk_index, c.first_page, c.last_page, c.char_start, c.char_end, c.tokens, c.section, c.content, d.name, d.title, d.version
from chunk c join document d on d.tenant_id = $1 and d.id = c.document_id where c.tenant_id = $1 and c.id = any($2)
