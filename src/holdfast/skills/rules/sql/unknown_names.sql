-- Those of these names that no tool, source or agent has. A tool also goes by its JSON-RPC method, with slashes or, as in MCP, with dots.
select n.part, n.name from unnest($2::text[], $3::text[]) n (part, name)
where case n.part
  when 'tool' then not exists (select from tool_t t where t.host_id = $1 and t.name = n.name)
    and not exists (select from tool_t t where t.host_id = $1 and t.service in (n.name, replace(n.name, '.', '/')))
  when 'source' then not exists (select from tool_source o where o.host_id = $1 and o.name = n.name)
  else not exists (select from agent_definition_t a where a.host_id = $1 and a.name = n.name)
end
order by n.part, n.name
