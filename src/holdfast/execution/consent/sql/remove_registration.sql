-- Forgets a client that its authorization server does not know any more.
delete from oauth_registration where host_id = $1 and issuer = $2 and redirect_uri = $3
