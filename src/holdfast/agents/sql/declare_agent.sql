-- Stores an agent of a program; one that is as it was is not written again.
insert into agent_definition_t (
  host_id, agent_def_id, name, kind, description, instructions, model, settings, origin, update_user)
values ($1, $2, $3, $4, $5, $6, $7, $8, 'code', 'code')
on conflict (host_id, name) do update
  set kind = excluded.kind, description = excluded.description, instructions = excluded.instructions, model = excluded.model,
    settings = excluded.settings, origin = 'code', active = true, aggregate_version = agent_definition_t.aggregate_version + 1,
    update_user = 'code', update_ts = holdfast.now()
  where (agent_definition_t.kind, agent_definition_t.description, agent_definition_t.instructions, agent_definition_t.model,
    agent_definition_t.settings, agent_definition_t.origin, agent_definition_t.active)
    is distinct from (excluded.kind, excluded.description, excluded.instructions, excluded.model, excluded.settings, 'code', true)
returning agent_definition_t.aggregate_version
