-- Stores what the model was sent and its reply, and counts the tokens and the cost. This is for replies that must be kept if the next statements
-- fail.
-- `outcome`: stored, lapsed (another process has the run, or it has ended).
drop function if exists holdfast.store_reply(
  uuid, uuid, bigint, int, json, jsonb, text, bigint, bigint, double precision, bigint, timestamptz);
create or replace function holdfast.store_reply(
  tenant uuid, run uuid, claim bigint, step int, reply holdfast.step_reply, out outcome text
) language plpgsql as $$
begin
  perform from public.runs r where r.tenant_id = tenant and r.id = run and r.token = claim and r.finished_at is null for update;
  if not found then
    outcome := 'lapsed';
    return;
  end if;
  perform holdfast.keep_reply(tenant, run, step, store_reply.reply);
  outcome := 'stored';
end $$;
revoke execute on function holdfast.store_reply from public;
grant execute on function holdfast.store_reply to holdfast_app;

-- Does the same in a run that is locked. A reply that is stored already stays, and is counted once: a retry after a lost connection sends it again.
drop function if exists holdfast.keep_reply(uuid, uuid, int, json, jsonb, text, bigint, bigint, double precision, bigint, timestamptz);
create or replace function holdfast.keep_reply(tenant uuid, run uuid, step int, given holdfast.step_reply) returns void language plpgsql as $$
#variable_conflict use_column
begin
  insert into public.run_step as s (
      tenant_id, run_id, number, sent, reply, model, input_tokens, output_tokens, cost, started_at, replied_at)
    values (tenant, run, step, given.sent, given.reply, given.model, given.input_tokens, given.output_tokens, given.cost, given.began,
      case when given.reply is not null then holdfast.now() end)
    on conflict (tenant_id, run_id, number) do update
      set sent = excluded.sent, reply = excluded.reply, model = excluded.model, replied_at = excluded.replied_at,
        input_tokens = s.input_tokens + excluded.input_tokens, output_tokens = s.output_tokens + excluded.output_tokens,
        cost = s.cost + excluded.cost
      where s.reply is null;
  if found then
    update public.runs r
      set steps = greatest(r.steps, step), input_tokens = r.input_tokens + given.input_tokens,
        output_tokens = r.output_tokens + given.output_tokens, cost = r.cost + given.cost,
        model = given.model, seen_seq = greatest(r.seen_seq, given.seen)
      where r.tenant_id = tenant and r.id = run;
  end if;
end $$;
revoke execute on function holdfast.keep_reply from public;
grant execute on function holdfast.keep_reply to holdfast_app;
