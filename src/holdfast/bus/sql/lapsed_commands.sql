-- Running commands whose lease has expired.
select correlation_id, token, attempts, worker, headers from command
where tenant_id = $1 and state = 'running' and leased_until <= holdfast.now()
order by leased_until limit 100
