-- Lists the processes of one machine that reported that they serve agents.
select worker, name from worker_presence where tenant_id = $1 and agents is not null and split_part(name, ' on ', 2) = $2
