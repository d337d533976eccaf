-- The version of the server, and the newest pgvector that it can install.
select current_setting('server_version_num')::int as version,
  (select default_version from pg_catalog.pg_available_extensions where name = 'vector') as vector
