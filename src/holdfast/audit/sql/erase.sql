-- Deletes the personal data of a user's entries.
select holdfast.erase_audit($1, $2)
