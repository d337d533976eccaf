-- A function file was applied.
insert into holdfast.function_file (name, hash) values ($1, $2)
on conflict (name) do update set hash = excluded.hash, applied_at = now()
