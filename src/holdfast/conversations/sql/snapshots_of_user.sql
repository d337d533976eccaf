-- The conversations of a user in an app, like snapshots.sql for all users. A separate statement, because one statement with an optional
-- user could not use an index.
-- $3: the framework that reads, which gets the time of the last node that it wrote.
select 'app' as scope, null::uuid as id, null::uuid as user_id, null as user_name, null as agent_name,
  null as session_id, null::bigint as revision, null::timestamptz as updated_at, null::float8 as last_time,
  jsonb_object_agg('app:' || s.key, s.value) as state
from state s where s.tenant_id = $1 and s.scope = 'app' and s.owner = $1 and s.app_name = $2 and s.value is not null
union all
select 'user', null, s.owner, null, null, null, null, null, null, jsonb_object_agg('user:' || s.key, s.value)
from state s where s.tenant_id = $1 and s.scope = 'user' and s.owner = $4 and s.app_name = $2 and s.value is not null
group by s.owner
union all
select 'session', c.id, c.user_id, c.user_name, c.agent_name, coalesce(c.session_name, c.session_id), c.revision, c.updated_at, (
    select case when l.form = $3 and json_typeof(l.native -> 'timestamp') = 'number' then (l.native ->> 'timestamp')::float8 end
    from node l
    where l.tenant_id = $1 and l.root = c.id and l.seq > 0 and (l.form is distinct from $3 or l.native is not null)
    order by l.seq desc limit 1), (
    select jsonb_object_agg(s.key, s.value)
    from state s where s.tenant_id = $1 and s.scope = 'session' and s.owner = c.id and s.app_name = '' and s.value is not null)
from conversation c where c.tenant_id = $1 and c.app_name = $2 and c.user_id = $4 and c.kind = 'conversation'
