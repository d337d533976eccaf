-- Notifies the listeners of these channels, so that they read their rows. It is a hint, so the commit does not wait for the disk.
select pg_notify(channel, '') from unnest($2::text[]) as channel, set_config('synchronous_commit', 'off', true) where $1::uuid is not null
