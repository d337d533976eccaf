-- The newest nodes of a conversation, oldest first. A framework's JSON is read only for that framework.
select * from (
  select id, root, parent, seq, context_type, context_name, context_value, content, payload, state, key,
  version, revision, deleted, created_at, updated_at, form, case when form = $5::text then native end as native
  from node where tenant_id = $1 and root = $2 and seq > 0 and not deleted and ($4::bigint is null or seq < $4)
  order by seq desc limit $3
) newest order by seq
