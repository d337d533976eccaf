-- The vector indexes that searches use.
select tenant_id, model, dimensions from memory_index
