-- Tells all processes something of a session of this tenant. It is a hint, so the commit does not wait for the disk.
select pg_notify('holdfast_mcp', $1::uuid::text || ' ' || $2) from set_config('synchronous_commit', 'off', true)
