-- Copies a conversation up to a node: the current nodes and their revisions, with the same numbers, contents, payloads and dates.
-- The ids of the copies are derived from the ids of the originals, so parents need no look-up. The state is the one at that node.
-- Further changes of the fork are published to the same topic. `hash`: of the fork's id.
-- A session id that another user has is stored as `qualified`, as in create_conversation.
-- `outcome`: forked, missing, no node, taken (the same user has the session id).
drop function if exists holdfast.fork_conversation(uuid, uuid, bigint, uuid, text, bigint);
create or replace function holdfast.fork_conversation(
  tenant uuid, source uuid, upto bigint, fork uuid, session text, qualified text, hash bigint, out outcome text
) language plpgsql as $$
#variable_conflict use_column
declare
  origin public.conversation;
  stored text := session;
begin
  -- A share lock keeps out writers, not readers, so the copy is of one moment.
  select c.* from public.conversation c where c.tenant_id = tenant and c.id = source for share into origin;
  outcome := case
    when not found then 'missing'
    when upto is not null and upto not between 0 and origin.last_seq then 'no node'
  end;
  if outcome is not null then
    return;
  end if;
  upto := coalesce(upto, origin.last_seq);
  if qualified is not null and (session ^@ 'adk:' or exists (
    select from public.conversation c where c.tenant_id = tenant and c.session_id = qualified)) then
    stored := qualified;
  end if;
  loop
    insert into public.conversation (
        tenant_id, id, kind, session_id, session_name, app_name, user_id, user_name, agent_name, revision, last_seq, forked_from,
        forked_at, topic, hash)
      values (tenant, fork, origin.kind, case when origin.kind = 'conversation' then stored end,
        case when origin.kind = 'conversation' and stored <> session then session end, origin.app_name,
        origin.user_id, origin.user_name, origin.agent_name, origin.revision, upto, source, upto,
        origin.topic, case when origin.topic is not null then fork_conversation.hash end)
      on conflict (tenant_id, session_id) do nothing;
    exit when found;
    if qualified is null or stored = qualified or not exists (
      select from public.conversation c
      where c.tenant_id = tenant and c.session_id = session
        and (c.user_id is distinct from origin.user_id or c.app_name <> origin.app_name)) then
      outcome := 'taken';
      return;
    end if;
    stored := qualified;
  end loop;
  insert into public.node (
      tenant_id, root, seq, id, parent, place, context_type, context_name, context_value, content, payload, form, native,
      state, key, version, revision, deleted, created_at, updated_at)
    select n.tenant_id, fork, n.seq, case when n.seq = 0 then fork else holdfast.copy_id(fork, n.id) end,
      -- A node that was moved below a node that the fork does not have becomes a child of the root.
      case
        when n.seq = 0 then null
        when n.parent <> source and exists (
          select from public.node p where p.tenant_id = tenant and p.id = n.parent and p.seq <= upto) then holdfast.copy_id(fork, n.parent)
        else fork
      end,
      n.place, n.context_type, n.context_name, n.context_value, n.content, n.payload, n.form, n.native,
      n.state, n.key, n.version, n.revision, n.deleted, n.created_at, n.updated_at
    from public.node n where n.tenant_id = tenant and n.root = source and n.seq <= upto;
  insert into public.node_revision (
      tenant_id, node_id, version, parent, place, context_type, context_name, context_value, content, payload, form, native,
      deleted, revision, updated_at)
    select r.tenant_id, holdfast.copy_id(fork, r.node_id), r.version,
      case
        when r.parent <> source and exists (
          select from public.node p where p.tenant_id = tenant and p.id = r.parent and p.seq <= upto) then holdfast.copy_id(fork, r.parent)
        else fork
      end,
      r.place, r.context_type, r.context_name, r.context_value, r.content, r.payload, r.form, r.native,
      r.deleted, r.revision, r.updated_at
    from public.node n join public.node_revision r on r.tenant_id = tenant and r.node_id = n.id
    where n.tenant_id = tenant and n.root = source and n.seq <= upto and n.version > 1;
  insert into public.state_change (tenant_id, root, revision, seq, state, created_at)
    select s.tenant_id, fork, s.revision, s.seq, s.state, s.created_at
    from public.state_change s where s.tenant_id = tenant and s.root = source and s.seq <= upto;
  insert into public.state (tenant_id, scope, owner, app_name, key, value)
    select distinct on (change.key) tenant, 'session', fork, '', change.key, change.value -> 0
    from (
      select n.seq, 0 as revision, each.key, each.value
        from public.node n, jsonb_each(n.state) as each where n.tenant_id = tenant and n.root = fork and n.state is not null
      union all
      select s.seq, s.revision, each.key, each.value
        from public.state_change s, jsonb_each(s.state) as each where s.tenant_id = tenant and s.root = fork
    ) change
    where change.key !~ '^(app|user):'
    order by change.key, change.seq desc, change.revision desc;
  outcome := 'forked';
end $$;
revoke execute on function holdfast.fork_conversation from public;
grant execute on function holdfast.fork_conversation to holdfast_app;

-- The id of a node's copy in a fork.
create or replace function holdfast.copy_id(fork uuid, original uuid) returns uuid language plpgsql immutable strict as $$
begin
  return encode(substr(sha256(uuid_send(fork) || uuid_send(original)), 1, 16), 'hex')::uuid;
end $$;
revoke execute on function holdfast.copy_id from public;
grant execute on function holdfast.copy_id to holdfast_app;
