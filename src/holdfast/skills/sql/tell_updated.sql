-- Has every node look which resources have changed. Nothing is written that must last, so the commit does not wait for the disk.
select pg_notify('holdfast_gateway', '') from set_config('synchronous_commit', 'off', true)
