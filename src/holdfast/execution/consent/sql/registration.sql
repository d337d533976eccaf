-- The client that was registered with an authorization server.
select sealed, key_id from oauth_registration where host_id = $1 and issuer = $2 and redirect_uri = $3
