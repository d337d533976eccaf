-- Forgets what was cancelled a while ago: nobody works on it any more.
delete from mcp_cancellation c where c.tenant_id = $1 and c.session_key = $2 and c.at < holdfast.now() - $3::interval
