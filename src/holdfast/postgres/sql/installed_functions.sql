-- The function files as they were last applied.
select name, hash from holdfast.function_file
