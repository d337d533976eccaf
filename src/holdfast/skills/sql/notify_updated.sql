-- Notifies every node that resources have changed. Nothing durable is written, so the commit does not wait for the disk.
select pg_notify('holdfast_gateway', '') from set_config('synchronous_commit', 'off', true)
