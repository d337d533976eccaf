-- Changes a conversation's state without a node. Without `changes`, it only checks. `expected`: the versions that keys must have, 0 for
-- a key that must not exist.
-- `outcome`: done, missing, or conflict with the first key that differs and its current version.
-- `topic`: the topic whose consumers have to be woken.
create or replace function holdfast.set_state(
  tenant uuid, conversation uuid, changes jsonb, expected jsonb,
  out outcome text, out name text, out expects bigint, out version bigint, out topic text
) language plpgsql as $$
#variable_conflict use_column
declare
  app text;
  person uuid;
  last bigint;
  changed_at bigint;
  talk_topic text;
  talk_hash bigint;
begin
  select c.app_name, c.user_id, c.last_seq, c.revision + 1 from public.conversation c
    where c.tenant_id = tenant and c.id = conversation for update into app, person, last, changed_at;
  if not found then
    outcome := 'missing';
    return;
  end if;
  if expected is not null then
    -- A key that does not exist gets a row without a value, so that there is a row to lock.
    insert into public.state (tenant_id, scope, owner, app_name, key, version)
      select tenant, wanted.scope, wanted.owner, wanted.app_name, wanted.key, 0
      from holdfast.state_rows(tenant, conversation, app, person, expected) wanted
      on conflict do nothing;
    perform from holdfast.state_rows(tenant, conversation, app, person, expected) wanted
      join public.state s on s.tenant_id = tenant and s.scope = wanted.scope and s.owner = wanted.owner
        and s.app_name = wanted.app_name and s.key = wanted.key
      order by octet_length(wanted.name), wanted.name collate "C" for update of s;  -- the order of jsonb, as in change_state
    select wanted.name, wanted.value::bigint, case when s.value is null then 0 else s.version end
      from holdfast.state_rows(tenant, conversation, app, person, expected) wanted
      join public.state s on s.tenant_id = tenant and s.scope = wanted.scope and s.owner = wanted.owner
        and s.app_name = wanted.app_name and s.key = wanted.key
      where wanted.value::bigint <> case when s.value is null then 0 else s.version end
      order by wanted.name limit 1
      into set_state.name, expects, set_state.version;
    if found then
      delete from public.state s using holdfast.state_rows(tenant, conversation, app, person, expected) wanted
        where s.tenant_id = tenant and s.scope = wanted.scope and s.owner = wanted.owner
          and s.app_name = wanted.app_name and s.key = wanted.key and s.version = 0;
      outcome := 'conflict';
      return;
    end if;
  end if;
  outcome := 'done';
  if changes is null then
    return;
  end if;

  update public.conversation c set revision = changed_at, updated_at = holdfast.now()
    where c.tenant_id = tenant and c.id = conversation returning c.topic, c.hash into talk_topic, talk_hash;
  insert into public.state_change (tenant_id, root, revision, seq, state) values (tenant, conversation, changed_at, last, changes);
  perform holdfast.change_state(tenant, conversation, app, person, changes, holdfast.now());
  if talk_topic is not null then
    set_state.topic := holdfast.tell(tenant, talk_topic, talk_hash, conversation, changed_at, conversation, 'state');
  end if;
end $$;
revoke execute on function holdfast.set_state from public;
grant execute on function holdfast.set_state to holdfast_app;

-- The rows in which the values of keys are stored.
create or replace function holdfast.state_rows(tenant uuid, conversation uuid, app text, person uuid, keys jsonb)
returns table (name text, scope text, owner uuid, app_name text, key text, value jsonb) language plpgsql stable as $$
begin
  return query select named.key, prefix.scope,
      case prefix.scope when 'session' then conversation when 'user' then person else tenant end,
      case prefix.scope when 'session' then '' else app end,
      case prefix.scope when 'session' then named.key else substr(named.key, length(prefix.scope) + 2) end,
      named.value
    from jsonb_each(keys) as named,
      lateral (select case when named.key ^@ 'user:' then 'user' when named.key ^@ 'app:' then 'app' else 'session' end as scope) as prefix;
end $$;
revoke execute on function holdfast.state_rows from public;
grant execute on function holdfast.state_rows to holdfast_app;
