-- Removes a secret; false where there is none.
select holdfast.remove_secret($1, $2, $3)
