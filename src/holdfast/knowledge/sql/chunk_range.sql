-- Returns the range of characters of some chunks of a document, if the chunk `$5` exists.
select min(c.char_start) filter (where asked.is_there) as char_start, max(c.char_end) filter (where asked.is_there) as char_end
from document d
left join chunk c on c.tenant_id = $1 and c.document_id = d.id and c.chunk_index between $3 and $4
cross join lateral (
  select exists (select from chunk x where x.tenant_id = $1 and x.document_id = $2 and x.chunk_index = $5) as is_there
) asked
where d.tenant_id = $1 and d.id = $2 group by d.id
