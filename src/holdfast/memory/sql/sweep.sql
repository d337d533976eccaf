-- Deletes expired or faded memories of an owner. It checks the condition again, because a memory may just have been used, pinned, prolonged or
-- made more important. `$6` and `$7` as `$2` and `$3` in fading.sql.
select holdfast.delete_memories($1, $2, $3, array(
  select m.id from memory m
  where m.tenant_id = $1 and m.scope = $2 and m.owner = $3 and m.id = any($4::uuid[])
    and case $5 when 'expired' then m.expires_at <= holdfast.now()
      else not m.pinned and holdfast.half_lives(
        extract(epoch from holdfast.now() - m.last_accessed)::float8, $6, m.importance, m.access_count) > $7::float8 end
  for update skip locked
), $5)
