-- Returns the best matches of a query for each owner, memories and chunks of documents; several owners in one round trip. The owners of
-- chunks ($28 to $30) are a part of the owners.
select m.*, null::uuid as document_id, null as name, null::int as first_page, null::int as last_page, null::bigint as char_start,
  null::int[] as passages, null::float8[] as nearness
from holdfast.search_memories(
  $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27) m
union all
select c.* from holdfast.search_chunks($1, $28, $29, $30, $31, $7, $8, $9, $10, $11, $12, $32, $33, $34, $24, $25, $26, $27) c
