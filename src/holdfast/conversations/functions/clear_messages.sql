-- Empties every message of a conversation, and what is below it, at once; what they were stays readable. Whether the conversation is there.
-- The keys of LangChain's messages become free: its programs shorten a history by clearing it and adding some of them again.
create or replace function holdfast.clear_messages(tenant uuid, conversation uuid) returns boolean language plpgsql as $$
declare
  gone uuid[];
begin
  perform from public.conversation c where c.tenant_id = tenant and c.id = conversation for update;
  if not found then
    return false;
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
    return true;
  end if;
  perform holdfast.keep_revision(tenant, id) from unnest(gone) as id;
  update public.conversation c set revision = c.revision + 1, updated_at = holdfast.now()
    where c.tenant_id = tenant and c.id = conversation;
  update public.node n set content = '', payload = null, form = null, native = null, deleted = true,
      key = case when n.form = 'langchain' then null else n.key end,
      version = n.version + 1, revision = c.revision, updated_at = holdfast.now()
    from public.conversation c
    where c.tenant_id = tenant and c.id = conversation and n.tenant_id = tenant and n.id = any(gone);
  return true;
end $$;
revoke execute on function holdfast.clear_messages from public;
grant execute on function holdfast.clear_messages to holdfast_app;
