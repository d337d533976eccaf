-- Empties every message of a conversation and the nodes below, at once. Former versions stay readable.
-- The keys of LangChain's messages become free: its programs shorten a history by clearing it and adding some messages again.
-- `outcome`: done, missing. `topic`: the topic whose consumers have to be woken.
create or replace function holdfast.clear_messages(tenant uuid, conversation uuid, out outcome text, out topic text)
language plpgsql as $$
#variable_conflict use_column
declare
  gone uuid[];
  talk record;
begin
  perform from public.conversation c where c.tenant_id = tenant and c.id = conversation for update;
  outcome := case when found then 'done' else 'missing' end;
  if outcome = 'missing' then
    return;
  end if;
  with recursive tree as (
    select n.id from public.node n
      where n.tenant_id = tenant and n.root = conversation and n.seq > 0 and n.context_type = 'text' and not n.deleted
    union
    select below.id from tree t cross join lateral (
      select n.id from public.node n
      where n.tenant_id = tenant and n.parent = t.id and n.parent <> n.root and not n.deleted offset 0) below
  )
  select array_agg(t.id) from tree t into gone;
  if gone is null then
    return;
  end if;
  perform holdfast.keep_revision(tenant, id) from unnest(gone) as id;
  update public.conversation c set revision = c.revision + 1, updated_at = holdfast.now()
    where c.tenant_id = tenant and c.id = conversation returning c.revision, c.topic, c.hash into talk;
  update public.node n set content = '', payload = null, form = null, native = null, deleted = true,
      key = case when n.form = 'langchain' then null else n.key end,
      version = n.version + 1, revision = talk.revision, updated_at = holdfast.now()
    where n.tenant_id = tenant and n.id = any(gone);
  if talk.topic is not null then
    clear_messages.topic := holdfast.tell(tenant, talk.topic, talk.hash, conversation, talk.revision, conversation, 'clear');
  end if;
end $$;
revoke execute on function holdfast.clear_messages from public;
grant execute on function holdfast.clear_messages to holdfast_app;
