-- Wakes the listeners of channels ($1), each with a hint ($2). Nothing durable is written, so the commit does not wait for the disk.
select pg_notify(due.channel, due.said) from unnest($1::text[], $2::text[]) as due (channel, said), set_config('synchronous_commit', 'off', true)
