-- Deletes a conversation with everything that belongs to it alone, including the memories of its session. State that its app and its user
-- share stays.
create or replace function holdfast.remove_conversation(tenant uuid, conversation uuid) returns boolean language plpgsql as $$
declare
  gone public.conversation;
begin
  delete from public.conversation c where c.tenant_id = tenant and c.id = conversation returning c.* into gone;
  if not found then
    return false;
  end if;
  delete from public.state s where s.tenant_id = tenant and s.scope = 'session' and s.owner = conversation;
  if gone.kind = 'conversation' then
    perform holdfast.leave_session(tenant, gone.user_id, coalesce(gone.session_name, gone.session_id), gone.session_id);
  end if;
  perform holdfast.delete_session_memories(tenant, conversation);
  return true;
end $$;
revoke execute on function holdfast.remove_conversation from public;
grant execute on function holdfast.remove_conversation to holdfast_app;

-- Deletes all memories of a session whose conversation is deleted. A concurrent holdfast.remember locks the conversation's row, so no
-- memory is added after this. The tombstones record that there were memories, and nothing of their content.
create or replace function holdfast.delete_session_memories(tenant uuid, whose uuid) returns void language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
begin
  with gone as (
    delete from public.memory m where m.tenant_id = tenant and m.scope = 'session' and m.owner = whose returning m.id
  ), told as (
    insert into public.memory_tombstone (tenant_id, memory_id, scope, owner, reason)
    select tenant, g.id, 'session', whose, 'forgotten' from gone g
    on conflict (tenant_id, memory_id) do update set reason = excluded.reason, deleted_at = excluded.deleted_at
  )
  delete from public.memory_revision r where r.tenant_id = tenant and r.memory_id in (select g.id from gone g);
  delete from public.memory_vector v where v.tenant_id = tenant and v.scope = 'session' and v.owner = whose;
  delete from public.memory_term t where t.tenant_id = tenant and t.scope = 'session' and t.owner = whose;
  -- Tombstones with a key keep deleted memories from coming back, which this session no longer needs.
  delete from public.memory_tombstone d
  where d.tenant_id = tenant and d.scope = 'session' and d.owner = whose and d.key_hash is not null;
end $$;
revoke execute on function holdfast.delete_session_memories from public;
grant execute on function holdfast.delete_session_memories to holdfast_app;
