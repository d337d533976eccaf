-- Returns the registered vector indexes, which searches use.
select tenant_id, indexed, model, dimensions, vectors from memory_index
