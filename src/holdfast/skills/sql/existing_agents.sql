-- Those of these agents that exist.
select name from agent_definition_t where host_id = $1 and name = any($2)
