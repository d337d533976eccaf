-- Stores the wanted model of each language (null for none), unless a process that opened after `$3` has stored one.
insert into memory_model (language, model, opened_at)
select w.language, w.model, $3::timestamptz from unnest($1::text[], $2::text[]) as w (language, model)
on conflict (language) do update set model = excluded.model, opened_at = excluded.opened_at
where memory_model.opened_at <= excluded.opened_at
