-- The agents that no program declares, and by what one sees that they have changed; what they are told is read only then.
select name, aggregate_version, update_ts from agent_definition_t
where host_id = $1 and origin = 'db' and kind = 'llm' and active order by name
