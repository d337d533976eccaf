-- Notifies every node that a check of a source is due. Nothing durable is written, so the commit does not wait for the disk.
select pg_notify('holdfast_sources', '') from set_config('synchronous_commit', 'off', true)
