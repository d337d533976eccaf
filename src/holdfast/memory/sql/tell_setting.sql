-- Says what a setting is, for plain SQL; touches no row that says so already.
insert into memory_setting (name, value, opened_at) values ($1, $2, holdfast.now())
on conflict (name) do update set value = excluded.value, opened_at = excluded.opened_at
where memory_setting.value <> excluded.value
