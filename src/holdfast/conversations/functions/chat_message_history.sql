-- LangChain's table of messages, as a view of the conversations. LangChain's own client reads, adds and clears messages there, unmodified,
-- and all other readers see its messages as nodes. Text is stored as in core/text.py, with an escape for characters that PostgreSQL
-- cannot store. LangChain reads and writes them as JSON escapes, which the type json accepts and jsonb would reject.

-- Converts stored JSON for a client. In JSON, infinity is a number beyond the range of floats, and NaN is null.
create or replace function holdfast.readable_json(stored text) returns json language plpgsql immutable parallel safe as $$
declare
  escape constant text := U&'\+10FFFE';
begin
  if strpos(stored, escape) = 0 then
    return stored::json;
  end if;
  stored := replace(stored, '"' || escape || 'nan"', 'null');
  stored := regexp_replace(stored, '"' || escape || '(-?)inf"', '\11e999', 'g');
  stored := regexp_replace(stored, escape || '(0000|d[89a-f][0-9a-f]{2})', '\\u\1', 'g');
  return replace(stored, escape || 'fffe', escape)::json;
end $$;
revoke execute on function holdfast.readable_json from public;
grant execute on function holdfast.readable_json to holdfast_app, holdfast_tenant;

-- Converts a client's JSON for storage: unchanged, except for NUL, lone surrogates and the escape itself.
create or replace function holdfast.storable_json(given text) returns json language plpgsql immutable parallel safe as $$
declare
  escape constant text := U&'\+10FFFE';
begin
  if given !~ ('\\u(0000|[dD][89a-fA-F])|' || escape) then
    return given::json;
  end if;
  -- Token by token from the left, because a backslash may be escaped itself, and two surrogates may be one character.
  return (
    select string_agg(
      case
        when lower(part[1]) = '\udbff\udffe' then escape || 'fffe'
        when part[1] ~* '^\\u(0000|d[89a-f]..)$' then escape || lower(substr(part[1], 3))
        else replace(part[1], escape, escape || 'fffe')
      end, '' order by place)
    from regexp_matches(
      given, '\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]+', 'g'
    ) with ordinality as parts (part, place)
  )::json;
end $$;
revoke execute on function holdfast.storable_json from public;

-- Converts a node to a LangChain message, from the parts that all readers understand. A message of an agent
-- other than the conversation's own has the type `human`. Models accept plain names only.
create or replace function holdfast.langchain_message(
  id uuid, context_name text, context_value text, content text, payload jsonb, agent text
) returns json language plpgsql immutable parallel safe as $$
declare
  other constant boolean := context_name = 'agent' and context_value not in ('assistant', coalesce(agent, 'assistant'));
  type constant text := case
    when payload ->> 'role' = 'user' then 'human'
    when payload ->> 'role' = 'assistant' then 'ai'
    when payload ? 'role' then payload ->> 'role'
    when context_name = 'system' then 'system'
    when context_name <> 'agent' then 'human'
    when context_value = 'tool' then 'tool'
    when other and agent is not null then 'human'
    else 'ai'
  end;
  speaker constant text := case
    when type = 'tool' then payload ->> 'tool_name'
    when other then substring(context_value from '^[A-Za-z0-9_-]{1,64}$')
  end;
begin
  return holdfast.readable_json(json_build_object('type', type, 'data', jsonb_build_object(
    'content', coalesce(nullif(content, ''), payload ->> 'result', ''),
    'additional_kwargs',
    case when payload ? 'attachments' then jsonb_build_object('attachments', payload -> 'attachments') else '{}' end,
    'response_metadata', jsonb_build_object(), 'type', type, 'name', speaker, 'id', id
  ) || case type
    when 'ai' then jsonb_build_object('invalid_tool_calls', jsonb_build_array(), 'usage_metadata', null, 'tool_calls', (
      select coalesce(jsonb_agg(jsonb_build_object(
        'name', call -> 'name', 'args', call -> 'arguments', 'id', call -> 'id', 'type', 'tool_call') order by place), '[]')
      from jsonb_array_elements(payload -> 'tool_calls') with ordinality as calls (call, place)))
    when 'tool' then jsonb_build_object(
      'tool_call_id', coalesce(payload ->> 'tool_call_id', ''), 'artifact', payload -> 'result',
      'status', case when payload ->> 'error' = 'true' then 'error' else 'success' end)
    else '{}'
  end)::text);
end $$;
revoke execute on function holdfast.langchain_message from public;
grant execute on function holdfast.langchain_message to holdfast_app, holdfast_tenant;

create or replace view public.chat_message_history (id, session_id, message, created_at) with (security_invoker = true) as
select n.seq, c.session_id,
  case
    when n.form = 'langchain' and n.native is not null then holdfast.readable_json(n.native::text)
    else holdfast.langchain_message(n.id, n.context_name, n.context_value, n.content, n.payload, c.agent_name)
  end,
  n.created_at
from public.conversation c
join public.node n on n.tenant_id = c.tenant_id and n.root = c.id
where c.kind = 'conversation' and n.seq > 0 and n.context_type = 'text' and not n.deleted;
grant select, insert, delete on public.chat_message_history to holdfast_app, holdfast_tenant;

-- The tenant that the triggers below work for; they run with their owner's rights. A tenant's login works for its tenant, whatever
-- it sets. A role that may run statements of any tenant works for the tenant that it sets.
create or replace function holdfast.tenant_of_caller() returns uuid language plpgsql stable as $$
declare
  own constant uuid := holdfast.tenant_of_login();
begin
  if own is not null then
    return own;
  end if;
  if not pg_has_role(session_user, 'holdfast_app', 'member') then
    raise insufficient_privilege using message = format('the login %s does not belong to a tenant', session_user),
      hint = 'Use the address that `holdfast db url --tenant NAME` prints.';
  end if;
  return current_setting('holdfast.tenant')::uuid;
end $$;
revoke execute on function holdfast.tenant_of_caller from public;

-- The payload of a LangChain message: the parts besides its text that all readers understand (as in adapters/langchain.py).
-- Calls and attachments of an unknown form are only in the stored JSON of the message.
create or replace function holdfast.payload_of_langchain(kind text, data jsonb) returns jsonb
language plpgsql immutable parallel safe as $$
declare
  said constant text := lower(case when kind ilike 'chat%' then data ->> 'role' else kind end);
  role constant text := case
    when said ~ '^(ai|assistant|model)' then 'assistant'
    when said ~ '^(system|developer)' then 'system'
    when said ~ '^(tool|function)' then 'tool'
    else 'user'
  end;
  payload jsonb := jsonb_build_object('role', role);
  calls jsonb;
  attached jsonb;
begin
  if jsonb_typeof(data -> 'tool_calls') = 'array' then
    select jsonb_agg(jsonb_build_object(
        'id', coalesce(call ->> 'id', ''), 'name', coalesce(call ->> 'name', ''),
        'arguments', case when jsonb_typeof(call -> 'args') = 'object' then call -> 'args' else '{}' end) order by place)
      from jsonb_array_elements(data -> 'tool_calls') with ordinality as calls (call, place)
      where jsonb_typeof(call) = 'object' into calls;
  end if;
  if jsonb_typeof(data -> 'content') = 'array' then
    select jsonb_agg(holdfast.attachment_of_langchain(block) order by place)
      from jsonb_array_elements(data -> 'content') with ordinality as blocks (block, place)
      where block ->> 'type' in ('image', 'image_url', 'audio', 'input_audio', 'video', 'file') into attached;
  end if;
  return payload
    || case when calls is null then '{}' else jsonb_build_object('tool_calls', calls) end
    || case when attached is null then '{}' else jsonb_build_object('attachments', attached) end
    || case when role = 'tool' then jsonb_strip_nulls(
        jsonb_build_object('tool_call_id', data ->> 'tool_call_id', 'tool_name', data ->> 'name')) else '{}' end
    || case when data ->> 'status' = 'error' then jsonb_build_object('error', true) else '{}' end;
end $$;
revoke execute on function holdfast.payload_of_langchain from public;

-- The location and the type of an attachment, without its content.
create or replace function holdfast.attachment_of_langchain(block jsonb) returns jsonb
language plpgsql immutable parallel safe as $$
declare
  image constant jsonb := block -> 'image_url';
  url constant text := coalesce(
    block ->> 'url', image ->> 'url', case when jsonb_typeof(image) = 'string' then image #>> '{}' end);
  inlined constant text := substring(url from '^data:([^;,]*)');
begin
  return jsonb_strip_nulls(jsonb_build_object(
    'mime_type', nullif(coalesce(block ->> 'mime_type', inlined), ''),
    'name', nullif(coalesce(block ->> 'filename', block #>> '{file,filename}', block ->> 'name'), ''),
    'uri', case when inlined is null then nullif(url, '') end));
end $$;
revoke execute on function holdfast.attachment_of_langchain from public;

-- The text of a message: its content, or the text blocks in it.
create or replace function holdfast.text_of_langchain(content jsonb) returns text language plpgsql immutable parallel safe as $$
begin
  if jsonb_typeof(content) is distinct from 'array' then
    return coalesce(content #>> '{}', '');
  end if;
  return coalesce((
    select string_agg(case when jsonb_typeof(block) = 'string' then block #>> '{}' else block ->> 'text' end, '' order by place)
    from jsonb_array_elements(content) with ordinality as blocks (block, place)
    where jsonb_typeof(block) = 'string' or block ->> 'type' = 'text'), '');
end $$;
revoke execute on function holdfast.text_of_langchain from public;

-- Appends a node for an added message. Creates a conversation for an unknown session.
create or replace function holdfast.add_chat_message() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  tenant constant uuid := holdfast.tenant_of_caller();
  given constant text := new.message::text;
  message json;
  data jsonb;
  payload jsonb;
  named text;
  talk record;
  done record;
begin
  if octet_length(given) > 8388608 then
    raise program_limit_exceeded using message = 'the message is too large',
      detail = format('It has %s bytes; the limit is 8388608.', octet_length(given)), hint = 'Split it into several messages.';
  end if;
  if new.session_id is null or octet_length(new.session_id) not between 1 and 2000 then
    raise invalid_parameter_value using message = 'the session_id is invalid',
      detail = 'It must have 1 to 2000 bytes.', hint = 'Use a shorter one, such as a hash of it.';
  end if;
  message := holdfast.storable_json(given);
  data := (message -> 'data')::jsonb;
  if json_typeof(message -> 'type') is distinct from 'string' or jsonb_typeof(data) is distinct from 'object' then
    raise invalid_parameter_value using message = 'the message is not a LangChain message',
      detail = 'It must have the form {"type": …, "data": {…}}.', hint = 'Pass the result of message_to_dict.';
  end if;
  if jsonb_path_exists(data, '$.**{128}') then
    raise program_limit_exceeded using message = 'the message is nested too deeply',
      detail = 'The limit is 128 levels.', hint = 'Flatten it, or send the inner part as text.';
  end if;
  payload := holdfast.payload_of_langchain(message ->> 'type', data);
  named := case when length(data ->> 'name') between 1 and 2000 then data ->> 'name' end;

  loop
    select c.id, c.agent_name, c.user_name from public.conversation c
      where c.tenant_id = tenant and c.session_id = new.session_id into talk;
    if not found then
      perform holdfast.create_conversation(tenant, holdfast.uuid7(), new.session_id, null, 'default', null, null, null, null);
      continue;
    end if;
    done := holdfast.append(
      tenant, talk.id, holdfast.uuid7(), null, 'text',
      case payload ->> 'role' when 'user' then 'user' when 'system' then 'system' else 'agent' end,
      case payload ->> 'role'
        when 'user' then coalesce(named, talk.user_name, 'user')
        when 'assistant' then coalesce(named, talk.agent_name, 'assistant')
        else payload ->> 'role'
      end,
      holdfast.text_of_langchain(data -> 'content'), payload, 'langchain', message, null, null, null, null);
    exit when done.outcome = 'appended';
  end loop;  -- again if the conversation was deleted meanwhile
  new.id := done.seq;
  new.created_at := done.at;
  return new;
end $$;
revoke execute on function holdfast.add_chat_message from public;

-- Empties the node of a deleted message; the former version stays readable. LangChain's programs shorten a history by clearing
-- it and adding the rest again, the same messages with the same ids, so their keys become free.
create or replace function holdfast.delete_chat_message() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  tenant constant uuid := holdfast.tenant_of_caller();
  gone record;
begin
  -- Lock before reading, so that the version is the current one.
  perform from public.conversation c where c.tenant_id = tenant and c.session_id = old.session_id for update;
  select n.id, n.version, n.form from public.conversation c
    join public.node n on n.tenant_id = tenant and n.root = c.id and n.seq = old.id and not n.deleted
    where c.tenant_id = tenant and c.session_id = old.session_id into gone;
  if not found then
    return null;
  end if;
  perform holdfast.delete_node(tenant, gone.id, gone.version);
  if gone.form = 'langchain' then
    update public.node n set key = null where n.tenant_id = tenant and n.id = gone.id;
  end if;
  return old;
end $$;
revoke execute on function holdfast.delete_chat_message from public;

create or replace trigger added instead of insert on public.chat_message_history
  for each row execute function holdfast.add_chat_message();
create or replace trigger deleted instead of delete on public.chat_message_history
  for each row execute function holdfast.delete_chat_message();
