-- Make or renew the engine's login: its name, its password (null where the server knows it by account), its roles.
select holdfast.ensure_login($1, $2, $3)
