-- All completions of a command, in order of arrival.
select correlation_id, id, applied, result, error, worker, at from command_completion
where tenant_id = $1 and correlation_id = $2
order by at, id
