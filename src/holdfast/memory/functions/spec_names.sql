-- Views of memories for plain SQL, one per memory scope. A row inserted into a view becomes a memory. Search finds it as soon as the Indexer has
-- read it. The views show current memories: not expired, not superseded, not buried.
--
-- The views of users, agents and the organization also show the chunks of their documents, with the metadata of the document, and its source or
-- name. The embedding of a chunk is that of its first passage. A chunk cannot be changed or deleted by itself.
--
-- `session_id` is the uuid of the session name: the name itself if it is a uuid. An insert for an unknown session creates its conversation.
-- The memories of a session are deleted with the conversation.
--
-- Times have a time zone, so that `expires_at > now()` is correct with every `timezone` setting. `embedding` is the vector of the client;
-- otherwise the vector of our model, if it has 384 dimensions. Vectors are stored with 16 bits per number. An omitted `expires_at` is set
-- from the settings; an omitted `memory_type` is the default type of the scope.

create or replace view public.session_memories (
  id, session_id, agent_id, user_id, content, embedding, importance_score, created_at, expires_at, metadata
) with (security_invoker = true) as
select m.id, i.id, m.agent_id, m.user_id, replace(m.content, U&'\+10FFFEfffe', U&'\+10FFFE'),
  (select v.embedding::vector(384) from public.memory_vector v
   where v.tenant_id = m.tenant_id and v.scope = m.scope and v.owner = m.owner and v.memory_id = m.id and v.dimensions = 384
     and v.model in ('', rtrim(m.embedded))
   order by v.model limit 1),
  m.importance, m.created_at, m.expires_at, m.metadata
from public.memory m
join public.conversation c on c.tenant_id = m.tenant_id and c.id = m.owner
join public.identity i on i.tenant_id = c.tenant_id and i.kind = 'session' and i.name = c.session_id
where m.scope = 'session' and m.expires_at > holdfast.now() and m.valid_to > holdfast.now() and m.buried_at is null;

create or replace view public.user_memories (
  id, agent_id, user_id, content, embedding, memory_type, importance_score, access_count, created_at, last_accessed, metadata
) with (security_invoker = true) as
select m.id, m.agent_id, m.owner, replace(m.content, U&'\+10FFFEfffe', U&'\+10FFFE'),
  (select v.embedding::vector(384) from public.memory_vector v
   where v.tenant_id = m.tenant_id and v.scope = m.scope and v.owner = m.owner and v.memory_id = m.id and v.dimensions = 384
     and v.model in ('', rtrim(m.embedded))
   order by v.model limit 1),
  m.type::varchar, m.importance, m.access_count, m.created_at, m.last_accessed, m.metadata
from public.memory m
where m.scope = 'user' and m.expires_at > holdfast.now() and m.valid_to > holdfast.now() and m.buried_at is null
union all
select c.id, d.agent_id, d.owner, replace(c.content, U&'\+10FFFEfffe', U&'\+10FFFE'),
  (select v.embedding::vector(384) from public.chunk_vector v
   where v.tenant_id = c.tenant_id and v.document_id = c.document_id and v.chunk_index = c.chunk_index and v.passage = 0 and v.model = c.embedded
     and v.dimensions = 384),
  'knowledge'::varchar, 1.0::float8, 0, d.created_at, d.updated_at, d.metadata
from public.document d join public.chunk c on c.tenant_id = d.tenant_id and c.document_id = d.id
where d.scope = 'user';

create or replace view public.agent_memories (
  id, agent_id, content, embedding, memory_type, created_at, metadata
) with (security_invoker = true) as
select m.id, m.owner, replace(m.content, U&'\+10FFFEfffe', U&'\+10FFFE'),
  (select v.embedding::vector(384) from public.memory_vector v
   where v.tenant_id = m.tenant_id and v.scope = m.scope and v.owner = m.owner and v.memory_id = m.id and v.dimensions = 384
     and v.model in ('', rtrim(m.embedded))
   order by v.model limit 1),
  m.type::varchar, m.created_at, m.metadata
from public.memory m
where m.scope = 'agent' and m.expires_at > holdfast.now() and m.valid_to > holdfast.now() and m.buried_at is null
union all
select c.id, d.owner, replace(c.content, U&'\+10FFFEfffe', U&'\+10FFFE'),
  (select v.embedding::vector(384) from public.chunk_vector v
   where v.tenant_id = c.tenant_id and v.document_id = c.document_id and v.chunk_index = c.chunk_index and v.passage = 0 and v.model = c.embedded
     and v.dimensions = 384),
  'knowledge'::varchar, d.created_at, d.metadata
from public.document d join public.chunk c on c.tenant_id = d.tenant_id and c.document_id = d.id
where d.scope = 'agent';

create or replace view public.organizational_memories (
  id, agent_id, source, content, embedding, chunk_index, document_id, created_at, metadata
) with (security_invoker = true) as
select m.id, m.agent_id, m.source::varchar, replace(m.content, U&'\+10FFFEfffe', U&'\+10FFFE'),
  (select v.embedding::vector(384) from public.memory_vector v
   where v.tenant_id = m.tenant_id and v.scope = m.scope and v.owner = m.owner and v.memory_id = m.id and v.dimensions = 384
     and v.model in ('', rtrim(m.embedded))
   order by v.model limit 1),
  m.chunk_index, m.document_id, m.created_at, m.metadata
from public.memory m
where m.scope = 'organization' and m.expires_at > holdfast.now() and m.valid_to > holdfast.now() and m.buried_at is null
union all
select c.id, d.agent_id, coalesce(d.source, d.name)::varchar, replace(c.content, U&'\+10FFFEfffe', U&'\+10FFFE'),
  (select v.embedding::vector(384) from public.chunk_vector v
   where v.tenant_id = c.tenant_id and v.document_id = c.document_id and v.chunk_index = c.chunk_index and v.passage = 0 and v.model = c.embedded
     and v.dimensions = 384),
  c.chunk_index, d.id, d.created_at, d.metadata
from public.document d join public.chunk c on c.tenant_id = d.tenant_id and c.document_id = d.id
where d.scope = 'organization';

grant select, insert, update, delete on
  public.session_memories, public.user_memories, public.agent_memories, public.organizational_memories to holdfast_app, holdfast_tenant;

alter view public.session_memories alter column id set default holdfast.uuid7();
alter view public.session_memories alter column importance_score set default 1.0;
alter view public.session_memories alter column created_at set default holdfast.now();
alter view public.session_memories alter column expires_at drop default; -- memory_of_spec fills it in from the settings
alter view public.user_memories alter column id set default holdfast.uuid7();
alter view public.user_memories alter column importance_score set default 1.0;
alter view public.user_memories alter column access_count set default 0;
alter view public.user_memories alter column created_at set default holdfast.now();
alter view public.user_memories alter column last_accessed set default holdfast.now();
alter view public.agent_memories alter column id set default holdfast.uuid7();
alter view public.agent_memories alter column created_at set default holdfast.now();
alter view public.organizational_memories alter column id set default holdfast.uuid7();
alter view public.organizational_memories alter column created_at set default holdfast.now();

-- Converts a row of a view to a row of `memory`, with defaults for omitted columns. Raises an error where the API would refuse the memory.
create or replace function holdfast.memory_of_spec(tenant uuid, in_scope text, given jsonb) returns public.memory
language plpgsql stable as $$
declare
  escape constant text := U&'\+10FFFE';
  item public.memory := jsonb_populate_record(null::public.memory, given);
begin
  item.owner := case in_scope
    when 'session' then null -- its conversation, see holdfast.session_of_spec
    when 'user' then item.user_id
    when 'agent' then item.agent_id
    else tenant end;
  if in_scope = 'user' then
    item.user_id := null;
  end if;
  if item.content !~ '\S' then
    raise invalid_parameter_value using message = 'the memory is empty', hint = 'Pass the text to remember.';
  end if;
  item.content := replace(item.content, escape, escape || 'fffe');
  if octet_length(item.content) > 65536 then
    raise program_limit_exceeded using message = 'the memory is too large',
      detail = format('It has %s bytes; the limit is 65536.', octet_length(item.content)),
      hint = 'Store its facts as several short memories.';
  end if;
  item.importance := coalesce((given ->> 'importance_score')::float8, 1.0);
  if item.importance not between 0 and 1 then
    raise invalid_parameter_value using message = format('the importance %s is invalid', item.importance),
      hint = 'Use a number from 0 to 1.';
  end if;
  item.metadata := coalesce(nullif(item.metadata, 'null'), '{}');
  if jsonb_typeof(item.metadata) <> 'object' then
    raise invalid_parameter_value using message = 'the metadata is not an object', hint = 'Pass a JSON object.';
  end if;
  item.metadata := holdfast.storable_json(item.metadata::text);
  item.id := coalesce(item.id, holdfast.uuid7());
  item.type := coalesce(nullif(given ->> 'memory_type', ''), case in_scope
    when 'session' then 'turn' when 'user' then 'fact' when 'agent' then 'learning' else 'knowledge' end);
  if octet_length(item.type) > 2000 or octet_length(item.source) > 2000 then
    raise program_limit_exceeded using message = 'the type or the source is too long', detail = 'The limit is 2000 bytes.',
      hint = 'Use a shorter one.';
  end if;
  if least(item.created_at, item.last_accessed, item.expires_at) < timestamptz '0002-01-01 00:00:00+00'
    or greatest(item.created_at, item.last_accessed, nullif(item.expires_at, 'infinity')) >= timestamptz '9999-01-01 00:00:00+00' then
    raise invalid_parameter_value using message = 'a time is out of range', hint = 'Use a year from 2 to 9998.';
  end if;
  item.access_count := greatest(coalesce(item.access_count, 0), 0);
  item.created_at := coalesce(item.created_at, holdfast.now());
  item.last_accessed := coalesce(item.last_accessed, holdfast.now());
  item.expires_at := coalesce(item.expires_at,
    case in_scope when 'session' then holdfast.now() + coalesce(
      (select s.value::interval from public.memory_setting s where s.name = 'session_lifetime'), interval '1 hour')
    else 'infinity'::timestamptz end);
  return item;
end $$;
revoke execute on function holdfast.memory_of_spec from public;

-- Returns the conversation of a session, given as a uuid. Creates it if there is none: for the user, if one is given, otherwise without a user.
create or replace function holdfast.session_of_spec(tenant uuid, session uuid, person uuid) returns uuid language plpgsql as $$
declare
  name constant text := coalesce((
    select i.name from public.identity i where i.tenant_id = tenant and i.kind = 'session' and i.id = session), session::text);
  conversation uuid;
begin
  insert into public.identity (tenant_id, kind, name, id) values (tenant, 'session', name, session) on conflict do nothing;
  loop
    -- A concurrent removal of the session waits for this lock, and then deletes the inserted memory, too.
    select c.id from public.conversation c where c.tenant_id = tenant and c.session_id = name for key share into conversation;
    exit when found;
    perform holdfast.create_conversation(tenant, holdfast.uuid7(), name, null, 'default', person, case when person is not null then
      coalesce((select i.name from public.identity i where i.tenant_id = tenant and i.kind = 'user' and i.id = person), person::text) end,
      null, null);
  end loop;
  return conversation;
end $$;
revoke execute on function holdfast.session_of_spec from public;

-- Stores an inserted row with the client's vector, and notifies the Indexer, which adds terms, language and the vector of our model.
create or replace function holdfast.add_spec_memory() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  tenant constant uuid := holdfast.tenant_of_caller();
  in_scope constant text := tg_argv[0];
  given constant jsonb := to_jsonb(new) - 'embedding';
  item public.memory := holdfast.memory_of_spec(tenant, in_scope, given);
  needed text;
begin
  foreach needed in array case in_scope
    when 'session' then array['session_id', 'agent_id', 'content']
    when 'user' then array['user_id', 'agent_id', 'content']
    else array['agent_id', 'content'] end
  loop
    if given ->> needed is null then
      raise not_null_violation using
        message = format('null value in column "%s" of "%s" violates its not-null constraint', needed, tg_table_name),
        hint = format('Pass its %s.', needed);
    end if;
  end loop;
  if in_scope = 'session' then
    item.owner := holdfast.session_of_spec(tenant, (given ->> 'session_id')::uuid, item.user_id);
  end if;
  if exists (select from public.memory m where m.tenant_id = tenant and m.id = item.id) then
    raise unique_violation using message = format('the memory %s already exists', item.id), hint = 'Omit the id, or update that memory.';
  end if;
  insert into public.memory (
    tenant_id, scope, id, owner, agent_id, user_id, importance, access_count, last_accessed, created_at, valid_from, expires_at, type,
    document_id, chunk_index, source, digest, metadata, content)
  values (
    tenant, in_scope, item.id, item.owner, item.agent_id, item.user_id, item.importance, item.access_count, item.last_accessed,
    item.created_at, least(item.created_at, holdfast.now()), item.expires_at, item.type, item.document_id, item.chunk_index, item.source,
    item.id, item.metadata, item.content);
  if new.embedding is not null then
    insert into public.memory_vector (tenant_id, scope, owner, memory_id, dimensions, importance, live_until, model, embedding)
    values (tenant, in_scope, item.owner, item.id, 384, item.importance, item.expires_at, '', new.embedding);
  end if;
  perform pg_notify('holdfast_memory', '');
  return jsonb_populate_record(new, to_jsonb(item) - 'content' - 'user_id' - 'agent_id' - 'expires_at'
    || jsonb_build_object('importance_score', item.importance, 'memory_type', item.type)
    || case in_scope when 'session' then jsonb_build_object('expires_at', item.expires_at) else '{}' end);
end $$;
revoke execute on function holdfast.add_spec_memory from public;

-- Raises an error if a row of a view is a chunk.
create or replace function holdfast.refuse_chunk(tenant uuid, given uuid) returns void language plpgsql as $$
declare
  named text;
begin
  select d.name into named from public.chunk c join public.document d on d.tenant_id = c.tenant_id and d.id = c.document_id
  where c.tenant_id = tenant and c.id = given;
  if found then
    raise feature_not_supported using message = format('the memory is a part of the document "%s"', named),
      hint = 'Change or remove the document.';
  end if;
end $$;
revoke execute on function holdfast.refuse_chunk from public;

-- Applies an update, and keeps the old version as a revision, as the API does. The Indexer reads new content again. The owner cannot change.
create or replace function holdfast.change_spec_memory() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  tenant constant uuid := holdfast.tenant_of_caller();
  in_scope constant text := tg_argv[0];
  item public.memory := holdfast.memory_of_spec(tenant, in_scope, to_jsonb(new) - 'embedding');
  was public.memory;
  stored public.memory;
  said_anew boolean;
  is_new boolean;
begin
  select m.* into was from public.memory m where m.tenant_id = tenant and m.scope = in_scope and m.id = old.id for update;
  if not found then
    perform holdfast.refuse_chunk(tenant, old.id);
    return null;
  end if;
  if item.id <> was.id or to_jsonb(new) ->> 'session_id' is distinct from to_jsonb(old) ->> 'session_id'
    or in_scope <> 'session' and item.owner is distinct from was.owner then
    raise feature_not_supported using message = 'the owner and the id of a memory cannot be changed',
      hint = 'Insert a new memory and delete this one.';
  end if;
  -- The views show text without escapes: a column that is not changed keeps its stored form.
  if new.content = old.content then
    item.content := was.content;
  end if;
  if new.metadata = old.metadata then
    item.metadata := was.metadata;
  end if;
  said_anew := item.content is distinct from was.content;
  is_new := said_anew or item.metadata <> was.metadata
    or in_scope in ('session', 'user') and item.importance <> was.importance
    or in_scope in ('user', 'agent') and item.type <> was.type
    or in_scope = 'session' and item.expires_at <> was.expires_at;
  if is_new then
    insert into public.memory_revision (tenant_id, memory_id, version, operation, at, content, type, importance, trust, metadata)
    values (tenant, was.id, was.version, 'remember', was.created_at, was.content, was.type, was.importance, was.trust, was.metadata)
    on conflict do nothing;
  end if;
  update public.memory m set
    version = m.version + is_new::int,
    content = item.content,
    metadata = item.metadata,
    agent_id = item.agent_id,
    created_at = item.created_at,
    user_id = case in_scope when 'session' then item.user_id else m.user_id end,
    expires_at = case in_scope when 'session' then item.expires_at else m.expires_at end,
    type = case when in_scope in ('user', 'agent') then item.type else m.type end,
    importance = case when in_scope in ('session', 'user') then item.importance else m.importance end,
    access_count = case in_scope when 'user' then item.access_count else m.access_count end,
    last_accessed = case in_scope when 'user' then item.last_accessed else m.last_accessed end,
    source = case in_scope when 'organization' then item.source else m.source end,
    document_id = case in_scope when 'organization' then item.document_id else m.document_id end,
    chunk_index = case in_scope when 'organization' then item.chunk_index else m.chunk_index end,
    digest = case when said_anew then holdfast.uuid7() else m.digest end,
    language = case when said_anew then null else m.language end,
    embedded = case when said_anew then null else m.embedded end,
    length = case when said_anew then null else m.length end,
    terms = case when said_anew then null else m.terms end
  where m.tenant_id = tenant and m.scope = in_scope and m.owner = was.owner and m.id = was.id
  returning m.* into stored;
  if is_new then
    insert into public.memory_revision (tenant_id, memory_id, version, operation, content, type, importance, trust, metadata)
    values (tenant, stored.id, stored.version, 'edit', stored.content, stored.type, stored.importance, stored.trust, stored.metadata);
  end if;
  if said_anew then
    delete from public.memory_term t
    where t.tenant_id = tenant and t.scope = in_scope and t.owner = was.owner and t.term = any(was.terms) and t.memory_id = was.id;
    delete from public.memory_vector v
    where v.tenant_id = tenant and v.scope = in_scope and v.owner = was.owner and v.model = rtrim(was.embedded) and v.memory_id = was.id;
    if in_scope <> 'session' then
      perform holdfast.unlink_entities(tenant, array[was.id], null);
    end if;
    perform holdfast.embed_next_anew(was);
    perform pg_notify('holdfast_memory', '');
  end if;
  if new.embedding::text is distinct from old.embedding::text then -- as text: pgvector's operators may be in any schema
    delete from public.memory_vector v
    where v.tenant_id = tenant and v.scope = in_scope and v.owner = was.owner and v.model = '' and v.memory_id = was.id;
    if new.embedding is not null then
      insert into public.memory_vector (tenant_id, scope, owner, memory_id, dimensions, importance, live_until, model, embedding)
      values (tenant, in_scope, was.owner, was.id, 384, stored.importance, 'infinity', '', new.embedding);
    end if;
  end if;
  perform holdfast.follow_memory(stored);
  return new;
end $$;
revoke execute on function holdfast.change_spec_memory from public;

-- Deletes the memory of a deleted row; only a tombstone is left.
create or replace function holdfast.delete_spec_memory() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  tenant constant uuid := holdfast.tenant_of_caller();
  whose uuid;
begin
  select m.owner into whose from public.memory m where m.tenant_id = tenant and m.scope = tg_argv[0] and m.id = old.id;
  if holdfast.delete_memories(tenant, tg_argv[0], whose, array[old.id], 'forgotten') = 0 then
    perform holdfast.refuse_chunk(tenant, old.id);
    return null;
  end if;
  return old;
end $$;
revoke execute on function holdfast.delete_spec_memory from public;

create or replace trigger added instead of insert on public.session_memories
  for each row execute function holdfast.add_spec_memory('session');
create or replace trigger changed instead of update on public.session_memories
  for each row execute function holdfast.change_spec_memory('session');
create or replace trigger deleted instead of delete on public.session_memories
  for each row execute function holdfast.delete_spec_memory('session');
create or replace trigger added instead of insert on public.user_memories
  for each row execute function holdfast.add_spec_memory('user');
create or replace trigger changed instead of update on public.user_memories
  for each row execute function holdfast.change_spec_memory('user');
create or replace trigger deleted instead of delete on public.user_memories
  for each row execute function holdfast.delete_spec_memory('user');
create or replace trigger added instead of insert on public.agent_memories
  for each row execute function holdfast.add_spec_memory('agent');
create or replace trigger changed instead of update on public.agent_memories
  for each row execute function holdfast.change_spec_memory('agent');
create or replace trigger deleted instead of delete on public.agent_memories
  for each row execute function holdfast.delete_spec_memory('agent');
create or replace trigger added instead of insert on public.organizational_memories
  for each row execute function holdfast.add_spec_memory('organization');
create or replace trigger changed instead of update on public.organizational_memories
  for each row execute function holdfast.change_spec_memory('organization');
create or replace trigger deleted instead of delete on public.organizational_memories
  for each row execute function holdfast.delete_spec_memory('organization');
