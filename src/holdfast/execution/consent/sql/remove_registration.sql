-- Forgets the clients of an authorization server that does not know one of them any more.
delete from oauth_registration where host_id = $1 and issuer = $2
