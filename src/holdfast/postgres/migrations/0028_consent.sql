-- Connections of users with back ends that need their consent (OAuth, authorization code). `sealed` has the tokens, and where they come from.
-- `origin`: the scheme, host and port of the back end that the user consented to; the tokens are sent nowhere else. `generation` counts new tokens.
-- `broken`: why the user has to connect again; null: the tokens can be used. `refreshing_until`: a process requests new tokens until then.
create table source_connection (
  host_id uuid not null,
  source_id uuid not null,
  user_name text collate "C" not null,
  sealed bytea not null,
  key_id text not null,
  origin text collate "C" not null,
  issuer text collate "C" not null,
  scopes text[] not null default '{}',
  generation bigint not null default 1,
  refreshable boolean not null,
  expires_at timestamptz,
  refreshing_until timestamptz not null default '-infinity',
  broken text,
  connected_at timestamptz not null default holdfast.now(),
  updated_at timestamptz not null default holdfast.now(),
  primary key (host_id, source_id, user_name),
  foreign key (host_id, source_id) references tool_source (host_id, source_id) on delete cascade
);
create index source_connection_by_user on source_connection (host_id, user_name);
call holdfast.hold_to_tenant('source_connection', 'host_id');
revoke select on source_connection from holdfast_tenant;

-- Connections that users have begun. `digest` is that of the state, which the browser brings back once. `session`: the browser session that began
-- it, and which alone may complete it; null: it was begun with a key or a token. `sealed` has the code verifier and the client.
create table consent_request (
  host_id uuid not null,
  digest bytea not null,
  source_id uuid not null,
  user_name text collate "C" not null,
  session uuid,
  sealed bytea not null,
  key_id text not null,
  expires_at timestamptz not null,
  primary key (host_id, digest),
  foreign key (host_id, source_id) references tool_source (host_id, source_id) on delete cascade
);
create index consent_request_by_end on consent_request (host_id, expires_at);
create index consent_request_by_user on consent_request (host_id, user_name, expires_at);
call holdfast.hold_to_tenant('consent_request', 'host_id');
revoke select on consent_request from holdfast_tenant;

-- Clients that this installation has registered with authorization servers (RFC 7591), for one address to which browsers come back.
create table oauth_registration (
  host_id uuid not null references tenant (id),
  issuer text collate "C" not null,
  redirect_uri text collate "C" not null,
  sealed bytea not null,
  key_id text not null,
  registered_at timestamptz not null default holdfast.now(),
  primary key (host_id, issuer, redirect_uri)
);
call holdfast.hold_to_tenant('oauth_registration', 'host_id');
revoke select on oauth_registration from holdfast_tenant;
