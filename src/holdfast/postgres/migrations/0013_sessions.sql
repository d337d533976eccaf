-- Sessions are users' own: two users may use one id, and what is remembered in a session belongs to its conversation.

-- The id that the caller gave, where the conversation is stored under a qualified name because another user has that id.
alter table conversation add column session_name text;
create index conversation_by_session_name on conversation (tenant_id, session_name) where session_name is not null;
update conversation
set session_name = regexp_replace(session_id, '^adk:(//[^/]*/[^/]*|[0-9a-f]{64})/', '')
where user_id is not null and session_id ~ '^adk:(//[^/]*/[^/]*|[0-9a-f]{64})/.';
alter table user_agent_active_sessions add column session_name text;

-- Session memories were owned by the uuid of the session's name; from now on by the conversation's id.
create temporary table session_owner on commit drop as
select old.tenant_id, old.owner as was, coalesce(i.name, old.owner::text) as name, c.id, old.living
from (
  select m.tenant_id, m.owner, bool_or(m.expires_at > holdfast.now()) as living
  from memory m where m.scope = 'session' group by m.tenant_id, m.owner
) old
left join identity i on i.tenant_id = old.tenant_id and i.kind = 'session' and i.id = old.owner
left join conversation c on c.tenant_id = old.tenant_id and c.session_id = coalesce(i.name, old.owner::text);

-- What still lives was written for a session without a conversation: it gets one. Removing a conversation made its memories expire.
update session_owner set id = holdfast.uuid7() where id is null and living;
insert into conversation (tenant_id, id, session_id, app_name)
select s.tenant_id, s.id, s.name, 'default' from session_owner s
where s.id is not null on conflict (tenant_id, session_id) do nothing;
insert into node (tenant_id, root, seq, id, place, context_type, context_name, context_value, content, revision)
select s.tenant_id, s.id, 0, s.id, 0, '', '', '', '', 0 from session_owner s
where s.id is not null on conflict do nothing;

-- The views for plain SQL show a session by its uuid.
insert into identity (tenant_id, kind, name, id)
select s.tenant_id, 'session', s.name, s.was from session_owner s where s.id is not null on conflict do nothing;

delete from memory_revision r using memory m, session_owner s
where s.id is null and m.tenant_id = s.tenant_id and m.scope = 'session' and m.owner = s.was
  and r.tenant_id = m.tenant_id and r.memory_id = m.id;
delete from memory m using session_owner s
where s.id is null and m.tenant_id = s.tenant_id and m.scope = 'session' and m.owner = s.was;
delete from memory_vector v using session_owner s
where s.id is null and v.tenant_id = s.tenant_id and v.scope = 'session' and v.owner = s.was;
delete from memory_term t using session_owner s
where s.id is null and t.tenant_id = s.tenant_id and t.scope = 'session' and t.owner = s.was;

update memory m set owner = s.id from session_owner s
where s.id <> s.was and m.tenant_id = s.tenant_id and m.scope = 'session' and m.owner = s.was;
update memory_vector v set owner = s.id from session_owner s
where s.id <> s.was and v.tenant_id = s.tenant_id and v.scope = 'session' and v.owner = s.was;
update memory_term t set owner = s.id from session_owner s
where s.id <> s.was and t.tenant_id = s.tenant_id and t.scope = 'session' and t.owner = s.was;
update memory_tombstone d set owner = s.id from session_owner s
where s.id <> s.was and d.tenant_id = s.tenant_id and d.scope = 'session' and d.owner = s.was;

-- Global: what plain SQL has to know of the settings: those of the process that opened last.
create table memory_setting (
  name text collate "C" primary key,
  value text not null,
  opened_at timestamptz not null
);
grant select, insert, update on memory_setting to holdfast_system;
grant select on memory_setting to holdfast_owner;
