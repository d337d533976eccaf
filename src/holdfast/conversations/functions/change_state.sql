-- Writes the changed keys of a conversation's state, and no others: what an append costs does not grow with the state.
-- A key's prefix says for whom it is; empty brackets delete it. Keys come in one order from every writer (that of jsonb),
-- so that two never wait for each other.
create or replace function holdfast.change_state(
  tenant uuid, conversation uuid, app text, person uuid, changes jsonb, at timestamptz
) returns void language plpgsql as $$
begin
  insert into public.state as s (tenant_id, scope, owner, app_name, key, value, updated_at)
    select tenant,
      case when named.key ^@ 'user:' then 'user' when named.key ^@ 'app:' then 'app' else 'session' end,
      case when named.key ^@ 'user:' then person when named.key ^@ 'app:' then tenant else conversation end,
      case when named.key ^@ 'user:' or named.key ^@ 'app:' then app else '' end,
      case when named.key ^@ 'user:' then substr(named.key, 6) when named.key ^@ 'app:' then substr(named.key, 5) else named.key end,
      changes -> named.key -> 0, at
    from (select jsonb_object_keys(changes) as key) as named
    on conflict (tenant_id, scope, owner, app_name, key)
      do update set value = excluded.value, version = s.version + 1, updated_at = excluded.updated_at;
end $$;
revoke execute on function holdfast.change_state from public;
grant execute on function holdfast.change_state to holdfast_app;
