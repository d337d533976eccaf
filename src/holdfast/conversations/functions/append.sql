-- Appends a node to a conversation in one round trip: its number, its state and its record, all or nothing.
-- `outcome`: appended; repeated (the key is known: `id` is the node that it created); conflict (`revision` is the current one);
-- lapsed (the turn no longer holds the conversation); missing; no parent. Only `appended` changes anything.
-- `topic`: the topic whose consumers have to be woken.
create or replace function holdfast.append(
  tenant uuid, conversation uuid, node uuid, under uuid, type text, name text, value text, content text,
  payload jsonb, form text, native json, key text, expected bigint, turn bigint, changes jsonb,
  out outcome text, out id uuid, out seq bigint, out revision bigint, out at timestamptz, out topic text
) language plpgsql as $$
#variable_conflict use_column
declare
  app text;
  person uuid;
  talk_topic text;
  talk_hash bigint;
  forked boolean;
  said record;
begin
  -- Each check is a separate statement that runs only if it is needed: a combined statement would be planned again every time.
  -- Rows other than the conversation's are checked under its lock, after the transaction that held the lock has committed. With an
  -- expected revision, a key needs no lock: a concurrent writer of the key changes the revision, and then the key is looked up again.
  if under is not null or turn is not null or (append.key is not null and expected is null) then
    perform from public.conversation c where c.tenant_id = tenant and c.id = conversation for update;
    if not found then
      outcome := 'missing';
      return;
    end if;
  end if;
  if append.key is not null then
    select n.id from public.node n
      where n.tenant_id = tenant and n.root = conversation and n.key = append.key into append.id;
    if found then
      outcome := 'repeated';
      return;
    end if;
  end if;
  if turn is not null and not holdfast.holds_turn(tenant, conversation, turn) then
    outcome := 'lapsed';
    return;
  end if;
  if under is not null and not exists (
    select from public.node n where n.tenant_id = tenant and n.id = under and n.root = conversation and not n.deleted) then
    outcome := 'no parent';
    return;
  end if;

  update public.conversation c
    set last_seq = c.last_seq + 1, revision = c.revision + 1, updated_at = holdfast.now()
    where c.tenant_id = tenant and c.id = conversation and (expected is null or c.revision = expected)
    returning c.last_seq, c.revision, c.updated_at, c.app_name, c.user_id, c.topic, c.hash, c.forked_from is not null
    into append.seq, append.revision, append.at, app, person, talk_topic, talk_hash, forked;
  if not found then
    select n.id from public.node n
      where n.tenant_id = tenant and n.root = conversation and n.key = append.key into append.id;
    select c.revision from public.conversation c
      where c.tenant_id = tenant and c.id = conversation into append.revision;
    outcome := case when append.id is not null then 'repeated' when append.revision is null then 'missing' else 'conflict' end;
    return;
  end if;

  insert into public.node (
    tenant_id, root, seq, id, parent, place, context_type, context_name, context_value,
    content, payload, form, native, state, key, revision, created_at, updated_at)
  values (
    tenant, conversation, append.seq, node, coalesce(under, conversation), append.revision, type, append.name, append.value,
    append.content, append.payload, append.form, append.native, changes, append.key, append.revision, append.at, append.at);
  if changes is not null then
    -- holdfast.change_state and holdfast.state_rows, inlined: the calls would cost a tenth of an append.
    insert into public.state as s (tenant_id, scope, owner, app_name, key, value, updated_at)
      select tenant,
        case when named.key ^@ 'user:' then 'user' when named.key ^@ 'app:' then 'app' else 'session' end,
        case when named.key ^@ 'user:' then person when named.key ^@ 'app:' then tenant else conversation end,
        case when named.key ^@ 'user:' or named.key ^@ 'app:' then app else '' end,
        case when named.key ^@ 'user:' then substr(named.key, 6) when named.key ^@ 'app:' then substr(named.key, 5) else named.key end,
        changes -> named.key -> 0, append.at
      from (select jsonb_object_keys(changes) as key) as named
      on conflict (tenant_id, scope, owner, app_name, key)
        do update set value = excluded.value, version = s.version + 1, updated_at = excluded.updated_at;
  end if;
  outcome := 'appended';
  append.id := node;
  if talk_topic is not null then
    said := holdfast.said(append.seq = 1 and not forked, type, append.name, append.value, append.payload);
    append.topic := holdfast.tell(
      tenant, talk_topic, talk_hash, conversation, append.revision, node, said.action, said.sender, said.command, append.form);
  end if;
end $$;
revoke execute on function holdfast.append from public;
grant execute on function holdfast.append to holdfast_app;
