-- Publishes every further change of a conversation to its agent's topic, if it was created before the agent was defined. `hash`: of its id.
-- `outcome`: attached (now or before), no agent (it is not defined), missing.
create or replace function holdfast.attach_agent(tenant uuid, conversation uuid, hash bigint, out outcome text)
language plpgsql as $$
#variable_conflict use_column
declare
  talk record;
  told text;
begin
  select c.kind, c.agent_name, c.topic from public.conversation c
    where c.tenant_id = tenant and c.id = conversation for update into talk;
  if not found then
    outcome := 'missing';
    return;
  end if;
  told := case when talk.kind = 'conversation' then holdfast.topic_of_agent(tenant, talk.agent_name) end;
  if talk.topic is null and told is not null then
    update public.conversation c set topic = told, hash = attach_agent.hash where c.tenant_id = tenant and c.id = conversation;
  end if;
  outcome := case when coalesce(talk.topic, told) is null then 'no agent' else 'attached' end;
end $$;
revoke execute on function holdfast.attach_agent from public;
grant execute on function holdfast.attach_agent to holdfast_app;

-- The topic of an agent that is defined and answers in conversations.
create or replace function holdfast.topic_of_agent(tenant uuid, agent text) returns text language plpgsql stable as $$
begin
  return (
    select d.kind || '-' || d.name from public.agent_definition_t d
    where d.host_id = tenant and d.name = agent and d.kind in ('llm', 'system') and d.active);
end $$;
revoke execute on function holdfast.topic_of_agent from public;
grant execute on function holdfast.topic_of_agent to holdfast_app;
