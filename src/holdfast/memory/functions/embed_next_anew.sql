-- Has the turn just after this one embedded anew, if its vector is made of both (memory/turns.py); the old one is found until then.
-- A blank at the end of the model's name says so: it is no longer the model that it should be, and its vector is still known.
create or replace function holdfast.embed_next_anew(turn public.memory) returns void language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
begin
  if turn.embedded like '%+previous' and turn.conversation is not null and turn.seq is not null then
    update public.memory m set embedded = rtrim(m.embedded) || ' '
    where m.tenant_id = turn.tenant_id and m.scope = turn.scope and m.owner = turn.owner and m.conversation = turn.conversation
      and m.seq = (
        select min(n.seq) from public.memory n
        where n.tenant_id = turn.tenant_id and n.scope = turn.scope and n.owner = turn.owner and n.conversation = turn.conversation
          and n.seq > turn.seq);
  end if;
end $$;
revoke execute on function holdfast.embed_next_anew from public;
grant execute on function holdfast.embed_next_anew to holdfast_app;
