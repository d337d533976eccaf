-- Registers a vector index, so that searches use it.
insert into memory_index (tenant_id, model, dimensions) values ($1, $2, $3)
on conflict (tenant_id, model) do update set dimensions = excluded.dimensions, built_at = excluded.built_at
