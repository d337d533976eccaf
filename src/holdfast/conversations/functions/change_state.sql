-- Writes the changed keys of a conversation's state and no others, so the cost of an append does not grow with the state.
-- The prefix of a key says whose it is; an empty array deletes it. All writers use the same order of keys (that of jsonb),
-- so they cannot deadlock.
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
