-- Stores a client that was registered with an authorization server. The last one replaces the others.
insert into oauth_registration (host_id, issuer, redirect_uri, sealed, key_id) values ($1, $2, $3, $4, $5)
on conflict (host_id, issuer, redirect_uri) do update set sealed = excluded.sealed, key_id = excluded.key_id, registered_at = excluded.registered_at
