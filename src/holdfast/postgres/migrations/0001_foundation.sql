-- What every later table stands on: the clock, identifiers, the rule that holds a table to its tenants, and who there is.
-- The roles exist already: they belong to the server, not to this database (postgres/tenancy.py).

create extension if not exists vector;

grant usage on schema holdfast to holdfast_app, holdfast_system, holdfast_tenant;

-- What time it is. PostgreSQL owns the clock; a test moves it with the setting holdfast.now.
create function holdfast.now() returns timestamptz language plpgsql stable parallel safe as $$
begin
  return coalesce(nullif(current_setting('holdfast.now', true), '')::timestamptz, now());
end $$;

-- Identifiers that grow with time keep indexes compact. They are no order of events: use a counter for that.
do $$
begin
  if current_setting('server_version_num')::int >= 180000 then
    create function holdfast.uuid7() returns uuid language plpgsql volatile parallel safe as
      'begin return uuidv7(); end';
  else
    create function holdfast.uuid7() returns uuid language plpgsql volatile parallel safe as $f$
      declare
        bits bytea := substr(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint), 3) || substr(uuid_send(gen_random_uuid()), 7);
      begin
        return encode(set_byte(bits, 6, (get_byte(bits, 6) & 15) | 112), 'hex')::uuid;
      end $f$;
  end if;
end $$;

-- Holds a table to its tenants. Called once for every table that has rows of tenants, in the migration that makes it.
-- Three kinds of role see a tenant's rows: the application's, which says for whom it asks and fails if it does not;
-- a tenant's own login, which is held by its name whatever it sets; and the owner, for migrations and backups.
create procedure holdfast.hold_to_tenant(held regclass, tenant_column name default 'tenant_id') language plpgsql as $$
declare
  asked text := format('%I = current_setting(''holdfast.tenant'')::uuid', tenant_column);
  login text := format('%I = substr(session_user, 4)::uuid', tenant_column);
begin
  execute format('alter table %s enable row level security', held);
  execute format('alter table %s force row level security', held);
  execute format('create policy of_the_tenant_asked_for on %s to holdfast_app using (%s) with check (%s)', held, asked, asked);
  execute format('create policy of_the_login on %s to holdfast_tenant using (%s) with check (%s)', held, login, login);
  execute format('create policy of_the_owner on %s to holdfast_owner using (true) with check (true)', held);
  execute format('grant select, insert, update, delete on %s to holdfast_app', held);
  execute format('grant select on %s to holdfast_tenant', held);
end $$;

-- Opens a table to the system role, across tenants: only for relays, sweeps and claims.
create procedure holdfast.open_to_system(opened regclass, privileges text) language plpgsql as $$
begin
  execute format('create policy of_the_system on %s to holdfast_system using (true) with check (true)', opened);
  execute format('grant %s on %s to holdfast_system', privileges, opened);
end $$;

revoke execute on procedure holdfast.hold_to_tenant, holdfast.open_to_system from public;

-- Global: a tenant's name is looked up before there is a tenant to ask for.
create table tenant (
  id uuid primary key default holdfast.uuid7(),
  name text not null unique check (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
  created_at timestamptz not null default holdfast.now()
);
grant select, insert on tenant to holdfast_system;

-- Global: a key is looked up by its hash before anybody knows whose it is. `kind`: a key is for programs, a link is used once and
-- becomes a session, a session is a browser's cookie. Keys are revoked, not deleted: that one was made ends local access for good.
create table api_key (
  hash bytea primary key,
  id uuid not null unique default holdfast.uuid7(),
  kind text not null check (kind in ('key', 'link', 'session')),
  tenant_id uuid not null references tenant (id),
  principal text not null,
  label text not null default '',
  scopes text[] not null,
  secret_id text not null,
  created_at timestamptz not null default holdfast.now(),
  expires_at timestamptz,
  revoked_at timestamptz
);
create index api_key_by_tenant on api_key (tenant_id, created_at);
create index api_key_by_secret on api_key (secret_id) where kind = 'key';
create index api_key_by_expiry on api_key (expires_at) where kind <> 'key';
grant select, insert, update, delete on api_key to holdfast_system;

-- Someone who may act in a tenant: a person or a program.
create table principal (
  tenant_id uuid not null references tenant (id),
  name text not null,
  role text not null default 'member' check (role in ('owner', 'member')),
  version int not null default 1,
  created_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, name)
);
call holdfast.hold_to_tenant('principal');

-- Users, agents and sessions are known by any string; where a column demands a uuid, this is the string's.
create table identity (
  tenant_id uuid not null,
  kind text not null,
  name text not null,
  id uuid not null,
  primary key (tenant_id, kind, name),
  unique (tenant_id, kind, id)
);
call holdfast.hold_to_tenant('identity');

insert into tenant (name) values ('default');
