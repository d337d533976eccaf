-- Stores the first tokens of a connection, or those of a user who connects again. The generation is new in any case: readers compare it.
insert into source_connection (host_id, source_id, user_name, sealed, key_id, origin, issuer, scopes, refreshable, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, holdfast.now() + make_interval(secs => $10))
on conflict (host_id, source_id, user_name) do update set sealed = excluded.sealed, key_id = excluded.key_id, origin = excluded.origin,
  issuer = excluded.issuer, scopes = excluded.scopes, refreshable = excluded.refreshable, expires_at = excluded.expires_at,
  generation = source_connection.generation + 1, refreshing_until = '-infinity', broken = null,
  connected_at = excluded.connected_at, updated_at = excluded.updated_at
