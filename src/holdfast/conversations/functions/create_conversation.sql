-- Creates a conversation with its root node and its first state. Without `session`, it is a document, which has no session.
-- If another app or user has the session id already, it is stored as `qualified`, if that is given: an id is unique per app and user.
-- An id that looks like a qualified name is always stored as `qualified` (core/names.py).
-- If its agent is defined, every change is published to the agent's topic. `hash`: of its id, as the log computes it.
-- `outcome`: created, or taken (`id` is the conversation that has the session id).
create or replace function holdfast.create_conversation(
  tenant uuid, conversation uuid, session text, qualified text, app text, person uuid, person_name text, agent text,
  changes jsonb, hash bigint default null,
  out outcome text, out id uuid
) language plpgsql as $$
#variable_conflict use_column
declare
  theirs boolean;
  stored text := session;
  told constant text := case when session is not null then holdfast.topic_of_agent(tenant, agent) end;
begin
  if qualified is not null and (session ^@ 'adk:' or exists (
    select from public.conversation c where c.tenant_id = tenant and c.session_id = qualified)) then
    stored := qualified;
  end if;
  loop
    insert into public.conversation as c (tenant_id, id, kind, session_id, session_name, app_name, user_id, user_name, agent_name, topic, hash)
      values (tenant, conversation, case when session is null then 'document' else 'conversation' end,
        stored, case when stored <> session then session end, app, person, person_name, agent, told, case when told is not null then create_conversation.hash end)
      on conflict (tenant_id, session_id) do nothing;
    exit when found;
    select c.id, c.app_name is distinct from app or c.user_id is distinct from person from public.conversation c
      where c.tenant_id = tenant and c.session_id = stored into create_conversation.id, theirs;
    continue when not found;  -- it was deleted meanwhile
    if qualified is null or stored = qualified or not theirs then
      outcome := 'taken';
      return;
    end if;
    stored := qualified;
  end loop;

  insert into public.node (tenant_id, root, seq, id, place, context_type, context_name, context_value, content, state, revision)
    values (tenant, conversation, 0, conversation, 0, '', '', '', '', changes, 0);
  if changes is not null then
    perform holdfast.change_state(tenant, conversation, app, person, changes, holdfast.now());
  end if;
  outcome := 'created';
  create_conversation.id := conversation;
end $$;
revoke execute on function holdfast.create_conversation from public;
grant execute on function holdfast.create_conversation to holdfast_app;
