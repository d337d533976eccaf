-- Lists the agents that are served by a process that reported itself in the last fifteen seconds.
-- An agent that was stored in the last ten seconds counts too, if any process serves agents: processes poll for new rows every two seconds.
with present as (
  select agents from worker_presence
  where tenant_id = $1 and agents is not null and seen_at > holdfast.now() - interval '15 seconds'
)
select a.name from agent_definition_t a
where a.host_id = $1 and a.active and exists (
  select from present p where a.name = any(p.agents) or (a.origin = 'db' and a.update_ts > holdfast.now() - interval '10 seconds')
)
