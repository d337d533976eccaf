-- Returns one agent.
select * from agent_definition_t where host_id = $1 and name = $2
