-- Stores a connection that a user begins. It removes those of the tenant that have expired, and the user's oldest above a limit.
with ended as (
  delete from consent_request where host_id = $1 and digest in (
    (select digest from consent_request where host_id = $1 and expires_at <= holdfast.now() limit 1000)
    union all
    (select digest from consent_request where host_id = $1 and user_name = $4 order by expires_at desc offset $9))
)
insert into consent_request (host_id, digest, source_id, user_name, session, sealed, key_id, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, holdfast.now() + make_interval(secs => $8))
returning expires_at
