-- Creates a secret or replaces its value. The history holds who changed it and for which hosts, but never the encrypted value.
create or replace function holdfast.set_secret(
  tenant uuid, called text, value bytea, key text, allowed text[], person text
) returns setof public.secret language plpgsql as $$
#variable_conflict use_column
declare
  was public.secret;
  now_is public.secret;
begin
  perform holdfast.lock_registry(tenant);
  select s.* into was from public.secret s where s.host_id = tenant and s.name = called;
  insert into public.secret as s (host_id, name, sealed, key_id, hosts, update_user)
    values (tenant, called, value, key, allowed, person)
    on conflict (host_id, name) do update
      set sealed = excluded.sealed, key_id = excluded.key_id, hosts = excluded.hosts, update_user = excluded.update_user,
        aggregate_version = s.aggregate_version + 1, update_ts = holdfast.now()
    returning s.* into now_is;
  perform holdfast.note_changes(
    tenant, array['secret'], array[called],
    array[case when was.name is not null then to_jsonb(was) - 'sealed' end], array[to_jsonb(now_is) - 'sealed'], person);
  return next now_is;
end $$;
revoke execute on function holdfast.set_secret from public;
grant execute on function holdfast.set_secret to holdfast_app;

-- Removes a secret; returns false if there is none.
create or replace function holdfast.remove_secret(tenant uuid, called text, person text) returns boolean language plpgsql as $$
#variable_conflict use_column
declare
  was public.secret;
begin
  perform holdfast.lock_registry(tenant);
  delete from public.secret s where s.host_id = tenant and s.name = called returning s.* into was;
  if not found then
    return false;
  end if;
  perform holdfast.note_changes(
    tenant, array['secret'], array[called], array[to_jsonb(was) - 'sealed'], array[null::jsonb], person);
  return true;
end $$;
revoke execute on function holdfast.remove_secret from public;
grant execute on function holdfast.remove_secret to holdfast_app;
