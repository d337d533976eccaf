-- Tenants' own logins have random names: whoever can log in reads every role's name, and learned other tenants' ids from it.

-- Global: whose login it is, is looked up before there is a tenant to ask for. Tenants cannot read it.
create table holdfast.tenant_login (
  login name primary key,
  tenant_id uuid not null unique references public.tenant (id),
  created_at timestamptz not null default holdfast.now()
);
grant select on holdfast.tenant_login to holdfast_owner;

-- The tenant of who has logged in; null for everybody who is no tenant's login. Settings and roles that a session takes on
-- change nothing in it. Its cost has the planner look rows up by it instead of calling it for each.
create function holdfast.tenant_of_login() returns uuid
language plpgsql stable parallel safe cost 1000 security definer set search_path = pg_catalog, pg_temp as $$
begin
  return (select l.tenant_id from holdfast.tenant_login l where l.login = session_user);
end $$;
revoke execute on function holdfast.tenant_of_login from public;
grant execute on function holdfast.tenant_of_login to holdfast_tenant;

-- As in 0001, but that a login is held by its row instead of its name.
create or replace procedure holdfast.hold_to_tenant(held regclass, tenant_column name default 'tenant_id') language plpgsql as $$
declare
  asked text := format('%I = current_setting(''holdfast.tenant'')::uuid', tenant_column);
  login text := format('%I = holdfast.tenant_of_login()', tenant_column);
begin
  execute format('alter table %s enable row level security', held);
  execute format('alter table %s force row level security', held);
  execute format('create policy of_the_tenant_asked_for on %s to holdfast_app using (%s) with check (%s)', held, asked, asked);
  execute format('create policy of_the_login on %s to holdfast_tenant using (%s) with check (%s)', held, login, login);
  execute format('create policy of_the_owner on %s to holdfast_owner using (true) with check (true)', held);
  execute format('grant select, insert, update, delete on %s to holdfast_app', held);
  execute format('grant select on %s to holdfast_tenant', held);
end $$;

do $$
declare
  held record;
begin
  for held in
    select polrelid::regclass as name, substring(pg_get_expr(polqual, polrelid) from '^\((\w+) = ') as tenant_column
    from pg_catalog.pg_policy where polname = 'of_the_login'
  loop
    execute format('alter policy of_the_login on %s using (%I = holdfast.tenant_of_login()) with check (%2$I = holdfast.tenant_of_login())',
      held.name, held.tenant_column);
  end loop;
end $$;

-- Logins that were made before go on working under their old names; `holdfast db logins rotate` gives them new ones.
insert into holdfast.tenant_login (login, tenant_id)
select r.rolname, t.id from public.tenant t join pg_catalog.pg_roles r on r.rolname = 'hf_' || replace(t.id::text, '-', '');

-- Notifications tell nothing but that rows may have changed, since every login can send and hear them. What they told is rows now.

-- Who has the stream of a session, and who reads a stream that was taken up again: of two the greater.
alter table mcp_session add column listener text collate "C";
alter table mcp_stream add column reader text collate "C";

-- A client has cancelled a request that another process may be working on.
create table mcp_cancellation (
  tenant_id uuid not null,
  session_key text collate "C" not null,
  request text collate "C" not null,
  at timestamptz not null default holdfast.now(),
  primary key (tenant_id, session_key, request),
  foreign key (tenant_id, session_key) references mcp_session (tenant_id, key) on delete cascade
);
call holdfast.hold_to_tenant('mcp_cancellation');

-- How often a resource has changed; forgotten when it has not for a while. The key is a digest, for addresses are long.
create table resource_update (
  tenant_id uuid not null references tenant (id),
  uri_digest bytea not null,
  version bigint not null default 1,
  at timestamptz not null default holdfast.now(),
  primary key (tenant_id, uri_digest)
);
create index resource_update_by_age on resource_update (tenant_id, at);
call holdfast.hold_to_tenant('resource_update');
