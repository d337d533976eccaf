-- The applied function files and their hashes.
select name, hash from holdfast.function_file
