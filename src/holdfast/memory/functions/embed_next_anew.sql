-- Marks the turn after this one for re-embedding, if its vector includes the previous turn (memory/previous_turns.py). The mark is a space at the end of
-- its model name: the name then differs from the wanted model, and search still finds the old vector. Notifies the Indexer if it marked a turn,
-- or if this turn has no vector, as after an edit. (PostgreSQL sends equal notifications of a transaction once.)
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
