-- Returns the next memories and chunks that the model has not read, in the order of their ids.
(select m.id, m.scope, m.owner, null::uuid as document_id, left(m.content, $5) as content
  from memory m
  where m.tenant_id = $1 and m.id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000') and m.scope <> 'session'
    and m.valid_to = 'infinity' and m.buried_at is null and m.expires_at > holdfast.now()
  order by m.id limit $4)
union all
(select c.id, d.scope, d.owner, d.id, left(c.content, $5)
  from chunk c join document d on d.tenant_id = $1 and d.id = c.document_id
  where c.tenant_id = $1 and c.id > coalesce($3::uuid, '00000000-0000-0000-0000-000000000000')
  order by c.id limit $4)
limit $4
