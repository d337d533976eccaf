-- Extends a session that is in use. It does no harm if this is lost, so the commit does not wait for the disk.
update mcp_session s set ends_at = holdfast.now() + $3 from set_config('synchronous_commit', 'off', true) where s.tenant_id = $1 and s.key = $2
