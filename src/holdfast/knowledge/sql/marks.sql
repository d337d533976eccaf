-- Returns where the pages and headings of a document begin, in order; a row without marks if it has none.
select d.characters, c.marks
from document d left join chunk c on c.tenant_id = $1 and c.document_id = d.id and c.marks is not null
where d.tenant_id = $1 and d.id = $2
order by c.chunk_index limit $3
