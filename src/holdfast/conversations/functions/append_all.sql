-- Appends several nodes that belong together, in one round trip: all of them, one after another, or none. For a known key, it returns the
-- node that the key created before. The expected revision is the one before the first new node, and the state changes with that node.
-- The conversation's row is written once: a row that one transaction updates many times becomes slower to find with each update.
-- `topic`: the topic whose consumers have to be woken.
create or replace function holdfast.append_all(
  tenant uuid, conversation uuid, nodes uuid[], types text[], names text[], vals text[], contents text[],
  payloads jsonb[], forms text[], natives json[], node_keys text[], expected bigint, turn bigint, changes jsonb
) returns table (outcome text, id uuid, seq bigint, revision bigint, at timestamptz, topic text) language plpgsql as $$
#variable_conflict use_column
declare
  origin public.conversation;
  known uuid;
  refusal text;
  added int := 0;
begin
  select c.* from public.conversation c where c.tenant_id = tenant and c.id = conversation for update into origin;
  if not found then
    return query select 'missing', null::uuid, null::bigint, null::bigint, null::timestamptz, null;
    return;
  end if;
  for i in 1..cardinality(nodes) loop
    known := null;
    if node_keys[i] is not null then
      select n.id from public.node n where n.tenant_id = tenant and n.root = conversation and n.key = node_keys[i] into known;
    end if;
    if known is not null then
      return query select 'repeated', known, null::bigint, null::bigint, null::timestamptz, null;
      continue;
    end if;
    refusal := case
      when added > 0 then null
      when turn is not null and not holdfast.holds_turn(tenant, conversation, turn) then 'lapsed'
      when expected <> origin.revision then 'conflict'
    end;
    if refusal is not null then
      return query select refusal, null::uuid, null::bigint, origin.revision, null::timestamptz, null;
      return;
    end if;
    added := added + 1;
    insert into public.node (
      tenant_id, root, seq, id, parent, place, context_type, context_name, context_value,
      content, payload, form, native, state, key, revision)
    values (
      tenant, conversation, origin.last_seq + added, nodes[i], conversation, origin.revision + added, types[i], names[i], vals[i],
      contents[i], payloads[i], forms[i], natives[i], case when added = 1 then changes end, node_keys[i], origin.revision + added);
    return query select 'appended', nodes[i], origin.last_seq + added, origin.revision + added, holdfast.now(), origin.topic;
  end loop;
  if added > 0 then
    update public.conversation c
      set last_seq = c.last_seq + added, revision = c.revision + added, updated_at = holdfast.now()
      where c.tenant_id = tenant and c.id = conversation;
    if changes is not null then
      perform holdfast.change_state(tenant, conversation, origin.app_name, origin.user_id, changes, holdfast.now());
    end if;
    if origin.topic is not null then
      perform holdfast.tell_nodes(
        tenant, origin.topic, origin.hash, conversation, origin.last_seq, forked => origin.forked_from is not null);
    end if;
  end if;
end $$;
revoke execute on function holdfast.append_all from public;
grant execute on function holdfast.append_all to holdfast_app;
