-- Stores the types of a source that callers can choose fields of. The same ones are not written again.
insert into selectable_types (host_id, source_id, hash, types) values ($1, $2, $3, $4)
on conflict (host_id, source_id) do update set hash = excluded.hash, types = excluded.types
where selectable_types.hash <> excluded.hash
