-- The keys of a tenant, newest first; links and browser sessions are not listed.
select id, tenant_id, principal, label, scopes, created_at, expires_at, revoked_at
from api_key where tenant_id = $1 and kind = 'key' order by created_at desc, id desc
