-- Sets the agent of a conversation that has none.
update conversation set agent_name = $3 where tenant_id = $1 and id = $2 and agent_name is null
