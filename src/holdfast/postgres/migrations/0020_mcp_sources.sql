-- The prompts, resources and resource templates of an MCP server, as it lists them.
alter table tool_source add column offers jsonb not null default '{}';
call holdfast.open_to_system('tool_source', 'select'); -- for those who listen to servers that announce changes

-- A tool of an MCP server comes with its source: without one, nothing can run it. Plain SQL could store such rows until now.
update tool_t set active = false where implementation_type = 'mcp_server' and source_id is null;
alter table tool_t add constraint tool_of_mcp_server check (implementation_type <> 'mcp_server' or source_id is not null or not active);
