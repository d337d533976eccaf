-- Returns the chunks of a document that overlap a range of its characters, in order; one row without a chunk if none does.
-- Chunks begin in their order, so the first is the last one that begins before the range.
select d.name, d.version, d.characters, c.first_page, c.last_page, c.char_start, c.char_end, c.section, c.after, c.content
from document d left join chunk c on c.tenant_id = $1 and c.document_id = d.id and c.char_start < $4
  and c.char_start >= coalesce((
    select x.char_start from chunk x where x.tenant_id = $1 and x.document_id = $2 and x.char_start <= $3 order by x.char_start desc limit 1), 0)
where d.tenant_id = $1 and d.id = $2
order by c.chunk_index
