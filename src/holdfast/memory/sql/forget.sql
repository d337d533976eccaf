-- Deletes a memory, and returns how many were deleted; no row if there is no such memory.
select holdfast.delete_memories($1, m.scope, m.owner, array[m.id], 'forgotten') from memory m where m.tenant_id = $1 and m.id = $2
