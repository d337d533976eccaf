-- The ledger: the files that have been applied to this database, with their hashes.
create schema if not exists holdfast;
create table if not exists holdfast.migration (
  name text primary key,
  hash text not null,
  applied_at timestamptz not null default now()
);
create table if not exists holdfast.function_file (
  name text primary key,
  hash text not null,
  applied_at timestamptz not null default now()
);
