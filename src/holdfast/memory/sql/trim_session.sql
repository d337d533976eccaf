-- Deletes the least important current memories of a session beyond $3; of equal importance, the oldest first. Pinned memories are neither
-- counted nor deleted.
select holdfast.delete_memories($1, 'session', $2, array(
  select m.id from memory m
  where m.tenant_id = $1 and m.scope = 'session' and m.owner = $2 and m.expires_at > holdfast.now() and not m.pinned
    and m.valid_to > holdfast.now() and m.buried_at is null
  order by m.importance desc, m.created_at desc, m.id desc offset $3
), 'limit')
