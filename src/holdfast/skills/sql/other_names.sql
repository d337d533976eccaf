-- The names of the tools that are not of a source.
select t.name from tool_t t where t.host_id = $1 and t.source_id is distinct from $2
