-- Deletes a batch of old tombstones. A tombstone with a key is kept, so that a later import of the same source does not restore the memory.
delete from memory_tombstone t
using (
  select tenant_id, memory_id from memory_tombstone
  where key_hash is null and deleted_at < holdfast.now() - $1::interval order by deleted_at limit $2
) old
where t.tenant_id = old.tenant_id and t.memory_id = old.memory_id
