-- Returns when and why a memory was deleted.
select reason, deleted_at from memory_tombstone where tenant_id = $1 and memory_id = $2
