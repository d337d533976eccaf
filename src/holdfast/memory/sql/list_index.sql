-- Registers a vector index, so that searches use it, with the number of vectors.
insert into memory_index (tenant_id, indexed, model, dimensions, vectors) values ($1, $2, $3, $4, $5)
on conflict (tenant_id, indexed, model) do update
set dimensions = excluded.dimensions, vectors = excluded.vectors, built_at = excluded.built_at
