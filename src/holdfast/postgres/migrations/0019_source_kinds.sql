-- Sources of tools are documents of REST services, GraphQL services, JSON-RPC services, and MCP servers.
alter table tool_source drop constraint tool_source_kind_check,
  add constraint tool_source_kind_check check (kind in ('openapi', 'graphql', 'jsonrpc', 'mcp'));
alter table tool_t drop constraint tool_t_implementation_type_check,
  add constraint tool_t_implementation_type_check
  check (implementation_type in ('function', 'rest', 'graphql', 'jsonrpc', 'mcp_server', 'python', 'javascript', 'bash', 'java'));
