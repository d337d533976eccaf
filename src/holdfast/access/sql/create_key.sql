-- Creates a key. Only its hash is stored.
insert into api_key (hash, kind, tenant_id, principal, agent, label, scopes, secret_id, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, holdfast.now() + $9::interval)
returning id, kind, tenant_id, principal, agent, label, scopes, created_at, expires_at, revoked_at
