-- Records an applied function file.
insert into holdfast.function_file (name, hash) values ($1, $2)
on conflict (name) do update set hash = excluded.hash, applied_at = now()
