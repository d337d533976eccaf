-- A whole conversation at one moment. The row of its root has the conversation and the state that it sees; the other rows are its nodes,
-- newest first.
-- $2, $3: the names of the session. $4, $5: the app and the user who ask. The conversation is theirs, or has no user yet: then it is shown
-- as it will be when it is theirs.
-- $6: the number of nodes. $7: the framework that reads, which gets its own JSON. $8: only nodes from this time on.
-- The conversation is looked up by its names first, then by its user: a user may have very many conversations.
with named as materialized (
  select id, coalesce(session_name, session_id) as session_id, app_name, user_id, user_name, agent_name, revision, updated_at
  from conversation where tenant_id = $1 and session_id in ($2, $3)
), found as (
  select * from named
  where app_name = $4 and user_id = $5::uuid or user_id is null and app_name in ($4, 'default')
  order by user_id is null limit 1
)
select 0::bigint as seq, c.id, null as form, null::text as native, '' as context_type, '' as context_name, '' as context_value, '' as content,
  null::jsonb as payload, (
    select jsonb_object_agg(case s.scope when 'session' then s.key else s.scope || ':' || s.key end, s.value)
    from state s
    where s.tenant_id = $1 and s.value is not null and (s.scope, s.owner, s.app_name) in (
      ('session', c.id, ''), ('user', $5::uuid, $4), ('app', $1, $4))) as state,
  c.updated_at as created_at, c.session_id, c.user_name, c.agent_name, c.revision, (
    -- An event of a framework can be several nodes; the first of them has its JSON.
    select case when l.form = $7 and json_typeof(l.native -> 'timestamp') = 'number' then (l.native ->> 'timestamp')::float8 end
    from node l
    where l.tenant_id = $1 and l.root = c.id and l.seq > 0 and (l.form is distinct from $7 or l.native is not null)
    order by l.seq desc limit 1) as last_time
from found c
union all
select n.seq, n.id, n.form, n.native, n.context_type, n.context_name, n.context_value, n.content, n.payload, n.state, n.created_at,
  null, null, null, null, null
from found c, lateral (
  select seq, id, case when form = $7 then form end as form, case when form = $7 then native::text end as native,
    context_type, context_name, context_value,
    case when form = $7 then '' else content end as content, case when form = $7 then null else payload end as payload,
    case when form = $7 then null else state end as state, created_at
  from node
  where tenant_id = $1 and root = c.id and seq > 0 and not deleted and (form is distinct from $7 or native is not null)
    and ($8::float8 is null or $8 <= case
      when form = $7 and json_typeof(native -> 'timestamp') = 'number' then (native ->> 'timestamp')::float8
      else extract(epoch from created_at) end)
  order by seq desc limit $6
) n
