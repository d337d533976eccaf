-- Takes a connection that was begun: a state is used once, whichever process gets it.
delete from consent_request r using tool_source o
where r.host_id = $1 and r.digest = $2 and r.expires_at > holdfast.now() and o.host_id = $1 and o.source_id = r.source_id
returning o.name as source, r.source_id, r.user_name, r.session, r.sealed, r.key_id
