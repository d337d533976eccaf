-- The applied completions of these commands, as far as they exist.
select correlation_id, id, applied, result, error, worker, at from command_completion
where tenant_id = $1 and correlation_id = any($2) and applied
