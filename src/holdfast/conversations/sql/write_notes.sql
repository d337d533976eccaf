-- Writes the next version of the notes, and its revision. Returns no row if that version exists already: of several concurrent
-- writers of the first version only one succeeds, because there was no row to lock yet.
with written as (
  insert into agent_long_term_memory (tenant_id, user_id, agent_name, notes, version) values ($1, $2, $3, $4, $5)
  on conflict (tenant_id, user_id, agent_name)
  do update set notes = excluded.notes, version = excluded.version, updated_at = excluded.updated_at
  where agent_long_term_memory.tenant_id = $1 and agent_long_term_memory.version = excluded.version - 1
  returning id, notes, version, updated_at
)
insert into agent_long_term_memory_revision (tenant_id, memory_id, version, operation, notes, key, created_at)
select $1, id, version, $6, notes, $7, updated_at from written
returning notes, version, created_at as updated_at
