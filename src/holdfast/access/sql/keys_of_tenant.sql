-- The keys of a tenant, newest first, and its active browser sessions, without links.
select id, kind, tenant_id, principal, agent, label, scopes, created_at, expires_at, revoked_at
from api_key
where tenant_id = $1 and (kind = 'key' or (kind = 'session' and revoked_at is null and expires_at > holdfast.now()))
order by created_at desc, id desc
