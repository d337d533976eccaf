-- Tenants with expired sessions of MCP clients: one index lookup per tenant.
select t.id from tenant t, lateral (select from mcp_session s where s.tenant_id = t.id and s.ends_at <= holdfast.now() limit 1) has_work
