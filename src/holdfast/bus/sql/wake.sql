-- Wakes the listeners of these channels. Nothing is written that must last, so the commit does not wait for the disk.
select pg_notify(channel, '') from unnest($1::text[]) as channel, set_config('synchronous_commit', 'off', true)
