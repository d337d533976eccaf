-- Returns for each owner of a scope the newest memory (creation time, agent, user) and the number of current memories, counted up to $4.
select newest.scope, newest.owner, newest.agent_id, newest.user_id, newest.created_at as newest, counted.memories
from unnest($3::uuid[]) with ordinality as asked (owner, place),
  lateral (
    select m.scope, m.owner, m.agent_id, m.user_id, m.created_at from memory m
    where m.tenant_id = $1 and m.scope = $2 and m.owner = asked.owner order by m.id desc limit 1
  ) newest,
  lateral (
    select count(*) as memories from (
      select from memory m
      where m.tenant_id = $1 and m.scope = $2 and m.owner = asked.owner
        and m.valid_to > holdfast.now() and m.expires_at > holdfast.now() and m.buried_at is null
      limit $4
    ) current
  ) counted
order by asked.place
