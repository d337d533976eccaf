-- Gives a conversation that has no agent yet to the one it is continued with.
update conversation set agent_name = $3 where tenant_id = $1 and id = $2 and agent_name is null
