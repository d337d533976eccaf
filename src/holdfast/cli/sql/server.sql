-- For `holdfast doctor`: the server's version, the available version of pgvector, and the server's time.
select current_setting('server_version') as version, current_setting('server_version_num')::int as number, clock_timestamp() as now,
  (select default_version from pg_catalog.pg_available_extensions where name = 'vector') as vector
