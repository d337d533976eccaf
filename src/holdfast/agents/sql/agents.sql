-- Lists all agents of a tenant.
select * from agent_definition_t where host_id = $1 order by name
