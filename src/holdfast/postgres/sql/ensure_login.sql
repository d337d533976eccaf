-- Make or renew a login: its name, its password (null where the server knows it by account), its roles, whether it has their rights by itself.
select holdfast.ensure_login($1, $2, $3, $4)
