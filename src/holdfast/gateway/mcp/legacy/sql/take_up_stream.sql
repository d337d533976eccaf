-- Sets the reader of a stream, unless it has a later one.
update mcp_stream s set reader = $4 from set_config('synchronous_commit', 'off', true)
where s.tenant_id = $1 and s.session_key = $2 and s.id = $3 and coalesce(s.reader, '') < $4
