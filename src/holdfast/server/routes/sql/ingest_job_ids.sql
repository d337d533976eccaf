-- The ids of jobs that ingest documents between two, in order.
select id from ingest_job where tenant_id = $1 and id between $2 and $3 order by id limit $4
