-- Connections that only members of pg_use_reserved_connections may use.
select current_setting('reserved_connections')::int
