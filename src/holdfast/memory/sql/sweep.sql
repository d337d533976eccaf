-- Deletes those of an owner's memories that are over, if they still are: one may have been used, pinned or prolonged just now.
select holdfast.delete_memories($1, $2, $3, array(
  select m.id from memory m
  where m.tenant_id = $1 and m.scope = $2 and m.owner = $3 and m.id = any($4::uuid[])
    and case $5 when 'expired' then m.expires_at <= holdfast.now()
      else not m.pinned and m.last_accessed < holdfast.now() - $6::interval end
  for update skip locked
), $5)
