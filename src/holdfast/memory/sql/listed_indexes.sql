-- Returns the registered vector indexes, which searches use.
select tenant_id, model, dimensions from memory_index
