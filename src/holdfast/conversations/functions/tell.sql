-- Publishes a change of a conversation to its topic, in the caller's transaction: one record per revision, so revisions have no gap there.
-- Returns the topic, whose consumers have to be woken. If the topic was removed, nothing is published, and nothing fails.
-- The lock of the partition's counter lasts until commit, so this comes last.
create or replace function holdfast.tell(
  tenant uuid, topic text, hash bigint, conversation uuid, revision bigint, node uuid, action text,
  sender text default 'system', command json default null, form text default null
) returns text language plpgsql as $$
declare
  message record;
  place record;
begin
  message := holdfast.message(conversation, revision, node, action, sender, command, form);
  place := holdfast.publish(tenant, topic, hash, conversation::text, holdfast.uuid7(), message.headers, message.value, message.bytes);
  return case when place."offset" is not null then topic end;
end $$;
revoke execute on function holdfast.tell from public;
grant execute on function holdfast.tell to holdfast_app;

-- The same for all nodes after a number, which were appended together.
create or replace function holdfast.tell_nodes(
  tenant uuid, topic text, hash bigint, conversation uuid, after bigint, forked boolean
) returns void language plpgsql as $$
begin
  perform holdfast.publish_all(
      tenant, array_agg(topic), array_agg(hash), array_agg(conversation::text), array_agg(holdfast.uuid7()),
      array_agg(message.headers order by n.seq), array_agg(message.value order by n.seq), array_agg(message.bytes order by n.seq))
    from public.node n
    cross join lateral holdfast.said(n.seq = 1 and not forked, n.context_type, n.context_name, n.context_value, n.payload) said
    cross join lateral holdfast.message(conversation, n.revision, n.id, said.action, said.sender, said.command, n.form) message
    where n.tenant_id = tenant and n.root = conversation and n.seq > after;
end $$;
revoke execute on function holdfast.tell_nodes from public;
grant execute on function holdfast.tell_nodes to holdfast_app;

-- The sender and the action of a node. `first`: it begins the conversation.
-- `command`: the first tool that is called and its arguments, if they are short; the node has the rest.
create or replace function holdfast.said(
  first boolean, type text, name text, value text, payload jsonb, out sender text, out action text, out command json
) language plpgsql immutable as $$
declare
  call constant jsonb := case when type = 'text' and name = 'agent' and value <> 'tool' then payload #> '{tool_calls,0}' end;
begin
  sender := case name when 'agent' then value when 'system' then 'system' else 'ui' end;
  action := case
    when call is not null then 'tool_invoke'
    when type = 'text' and name = 'agent' and value = 'tool' then 'tool_result'
    when type = 'text' and name = 'system' then 'system_message'
    when first then 'create'
    else 'append'
  end;
  if octet_length(call::text) <= 8000 then
    command := json_build_array(call ->> 'name', holdfast.readable_json((call -> 'arguments')::text)::text);
  end if;
end $$;
revoke execute on function holdfast.said from public;
grant execute on function holdfast.said to holdfast_app;

-- A message as bus/messages.py reads it, and its size as bus/records.py computes it. It never contains what was said.
-- JSON is written as text: functions that build JSON would double the cost.
create or replace function holdfast.message(
  conversation uuid, revision bigint, node uuid, action text, sender text, command json, form text,
  out headers json, out value json, out bytes int
) language plpgsql stable as $$
begin
  headers := '{"content-type":"application/json","holdfast-schema":"conversation-message/1.0.0","holdfast-sequence":"' || revision || '"'
    || coalesce(',"holdfast-form":' || to_json(form), '') || '}';
  value := '{"version":"1.0.0","conversation_id":"' || conversation || '","agent_id":' || to_json(sender)
    || ',"timestamp":"' || to_char(holdfast.now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    || '","docmem_node_id":"' || conversation || '","node_id":"' || node || '","action":"' || action || '"'
    || coalesce(',"command":' || command, '') || '}';
  bytes := octet_length(value::text) + octet_length(headers::text) + octet_length(conversation::text) + 100;
end $$;
revoke execute on function holdfast.message from public;
grant execute on function holdfast.message to holdfast_app;
