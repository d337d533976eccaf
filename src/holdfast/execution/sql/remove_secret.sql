-- Removes a secret; returns false if there is none.
select holdfast.remove_secret($1, $2, $3)
