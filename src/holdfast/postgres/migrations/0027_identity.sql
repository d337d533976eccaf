-- The keys with which the engine signs who calls, for back ends. Global: one installation has one issuer, whose keys all of its tenants' back ends fetch.
-- `public_key`: a JWK. `sealed`: the private one, encrypted by the key `seal_id`. A key is published when its row is there, and signs from `active_from` on,
-- until the next one does.
create table identity_key (
  kid text primary key,
  public_key jsonb not null,
  sealed bytea not null,
  seal_id text not null,
  active_from timestamptz not null,
  created_by text not null default '',
  created_at timestamptz not null default holdfast.now()
);
grant select, insert, update, delete on identity_key to holdfast_system;
