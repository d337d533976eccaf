-- Writes the changed keys of a conversation's state, and no others: what an append costs does not grow with the state.
-- A key's prefix says for whom it is; empty brackets delete it. Keys come in one order from every writer (that of jsonb),
-- so that two never wait for each other.
create or replace function holdfast.change_state(
  tenant uuid, conversation uuid, app text, person uuid, changes jsonb, at timestamptz
) returns void language plpgsql as $$
begin
  insert into public.state as s (tenant_id, scope, owner, app_name, key, value, updated_at)
    select tenant, changed.scope, changed.owner, changed.app_name, changed.key, changed.value -> 0, at
    from holdfast.state_rows(tenant, conversation, app, person, changes) as changed
    on conflict (tenant_id, scope, owner, app_name, key)
      do update set value = excluded.value, version = s.version + 1, updated_at = excluded.updated_at;
end $$;
revoke execute on function holdfast.change_state from public;
grant execute on function holdfast.change_state to holdfast_app;
