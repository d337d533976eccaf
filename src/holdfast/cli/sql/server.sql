-- What the doctor asks a server: which one it is, whether it can have pgvector, and what time it is there.
select current_setting('server_version') as version, current_setting('server_version_num')::int as number, clock_timestamp() as now,
  (select default_version from pg_catalog.pg_available_extensions where name = 'vector') as vector
