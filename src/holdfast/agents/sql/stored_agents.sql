-- Lists the agents that no app declares, with a stamp that changes with every edit. Their instructions are read only after a change.
select name, aggregate_version, update_ts from agent_definition_t
where host_id = $1 and origin = 'db' and kind = 'llm' and active order by name
