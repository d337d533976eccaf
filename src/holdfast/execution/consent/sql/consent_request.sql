-- A connection that was begun and has not expired: for whom, and with what.
select o.name as source, r.source_id, r.user_name, r.session, r.sealed, r.key_id
from consent_request r join tool_source o on o.host_id = $1 and o.source_id = r.source_id
where r.host_id = $1 and r.digest = $2 and r.expires_at > holdfast.now()
