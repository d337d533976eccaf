-- Keeps what the model was sent and what it replied, before anything is done with it, and counts what it took.
-- A reply that is there already stays, and is counted once: it may be sent again after the connection was lost.
-- `outcome`: stored, lapsed (another has the run by now).
create or replace function holdfast.store_reply(
  tenant uuid, run uuid, claim bigint, step int, sent json, reply jsonb, model text,
  input_tokens bigint, output_tokens bigint, cost double precision, seen bigint, began timestamptz, out outcome text
) language plpgsql as $$
#variable_conflict use_column
begin
  perform from public.runs r where r.tenant_id = tenant and r.id = run and r.token = claim and r.finished_at is null for update;
  if not found then
    outcome := 'lapsed';
    return;
  end if;
  insert into public.run_step as s (
      tenant_id, run_id, number, sent, reply, model, input_tokens, output_tokens, cost, started_at, replied_at)
    values (tenant, run, step, store_reply.sent, store_reply.reply, store_reply.model, store_reply.input_tokens,
      store_reply.output_tokens, store_reply.cost, began, case when store_reply.reply is not null then holdfast.now() end)
    on conflict (tenant_id, run_id, number) do update
      set sent = excluded.sent, reply = excluded.reply, model = excluded.model, replied_at = excluded.replied_at,
        input_tokens = s.input_tokens + excluded.input_tokens, output_tokens = s.output_tokens + excluded.output_tokens,
        cost = s.cost + excluded.cost
      where s.reply is null;
  if found then
    update public.runs r
      set steps = greatest(r.steps, step), input_tokens = r.input_tokens + store_reply.input_tokens,
        output_tokens = r.output_tokens + store_reply.output_tokens, cost = r.cost + store_reply.cost,
        model = store_reply.model, seen_seq = greatest(r.seen_seq, seen)
      where r.tenant_id = tenant and r.id = run;
  end if;
  outcome := 'stored';
end $$;
revoke execute on function holdfast.store_reply from public;
grant execute on function holdfast.store_reply to holdfast_app;
