-- Deletes a memory; how many there were.
select holdfast.delete_memories($1, m.scope, m.owner, array[m.id], 'forgotten') from memory m where m.tenant_id = $1 and m.id = $2
