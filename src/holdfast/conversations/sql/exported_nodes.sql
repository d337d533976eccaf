-- The nodes of a conversation after a number with all that is stored of them, oldest first. The size of the contents limits a page, too.
select id, root, parent, seq, context_type, context_name, context_value, content, payload, state, key,
  version, revision, deleted, created_at, updated_at, form, native
from (
  select *, sum(octet_length(content)) over (order by seq) - octet_length(content) as bytes_before
  from node where tenant_id = $1 and root = $2 and seq > $3
  order by seq limit 1000
) page
where bytes_before < 4000000
order by seq
