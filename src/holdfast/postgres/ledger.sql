-- What has been applied to this database, and in which form.
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
