-- Expires the memories of a session at once; returns whether there were any. `owner`: the session's conversation.
create or replace function holdfast.expire_session(tenant uuid, owner uuid) returns boolean language plpgsql as $$
declare
  had_any boolean;
begin
  update public.memory m set expires_at = holdfast.now()
  where m.tenant_id = tenant and m.scope = 'session' and m.owner = expire_session.owner and m.expires_at > holdfast.now();
  had_any := found;
  update public.memory_vector v set live_until = holdfast.now()
  where v.tenant_id = tenant and v.scope = 'session' and v.owner = expire_session.owner and v.live_until > holdfast.now();
  return had_any;
end $$;
revoke execute on function holdfast.expire_session from public;
grant execute on function holdfast.expire_session to holdfast_app;
