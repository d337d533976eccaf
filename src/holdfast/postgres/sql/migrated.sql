-- The applied migrations and their hashes.
select name, hash from holdfast.migration
