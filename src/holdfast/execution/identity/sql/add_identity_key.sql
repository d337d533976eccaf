-- Adds a key that signs who calls. False if there was one, and only the first was to be added.
select holdfast.add_identity_key($1, $2, $3, $4, $5, $6, $7, $8, $9)
