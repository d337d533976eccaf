-- Begins a session of an MCP client.
select holdfast.begin_mcp_session($1, $2, $3, $4, $5, $6, $7, $8, $9)
