-- Tells every node which resources have changed. Nothing is written that must last, so the commit does not wait for the disk.
select pg_notify('holdfast_gateway', told) from unnest($1::text[]) as told, set_config('synchronous_commit', 'off', true)
