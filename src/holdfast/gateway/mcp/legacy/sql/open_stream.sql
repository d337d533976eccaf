-- Opens a stream of a session.
select holdfast.open_mcp_stream($1, $2, $3, $4, $5, $6)
