-- Deletes old cancellations of a session: nobody works on these requests any more.
delete from mcp_cancellation c where c.tenant_id = $1 and c.session_key = $2 and c.at < holdfast.now() - $3::interval
