-- Has the turn just after this one embedded anew, if its vector is made of both (memory/turns.py); the old one is found until then.
-- A blank at the end of the model's name says so: it is no longer the model that it should be, and its vector is still known. The Indexer is
-- woken if there is one, or if this turn was said anew and has no vector yet. (However often in a transaction: it is notified once.)
create or replace function holdfast.embed_next_anew(turn public.memory) returns void language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
begin
  if turn.conversation is null or turn.seq is null then
    return;
  end if;
  update public.memory m set embedded = rtrim(m.embedded) || ' '
  where m.tenant_id = turn.tenant_id and m.scope = turn.scope and m.owner = turn.owner and m.conversation = turn.conversation
    and rtrim(m.embedded) like '%+previous' and m.seq = (
      select min(n.seq) from public.memory n
      where n.tenant_id = turn.tenant_id and n.scope = turn.scope and n.owner = turn.owner and n.conversation = turn.conversation
        and n.seq > turn.seq);
  if found or exists (
    select from public.memory m
    where m.tenant_id = turn.tenant_id and m.scope = turn.scope and m.owner = turn.owner and m.id = turn.id and m.embedded is null
  ) then
    perform pg_notify('holdfast_memory', '');
  end if;
end $$;
revoke execute on function holdfast.embed_next_anew from public;
grant execute on function holdfast.embed_next_anew to holdfast_app;
