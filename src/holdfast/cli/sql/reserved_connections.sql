-- The number of connections that are reserved for members of pg_use_reserved_connections.
select current_setting('reserved_connections')::int
