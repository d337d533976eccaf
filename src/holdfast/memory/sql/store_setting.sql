-- Stores a setting for the views of plain SQL. Changes no row if the value is the same.
insert into memory_setting (name, value, opened_at) values ($1, $2, holdfast.now())
on conflict (name) do update set value = excluded.value, opened_at = excluded.opened_at
where memory_setting.value <> excluded.value
