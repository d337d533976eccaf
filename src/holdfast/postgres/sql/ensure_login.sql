-- Creates or renews the engine's login: its name, its password (null if the server authenticates it by account), its roles.
select holdfast.ensure_login($1, $2, $3)
