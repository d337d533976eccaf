-- A page of dead letters of a group ($2) and a topic ($3), or of all, newest first: those before $4. Their ids grow with time.
select
  id, group_name as "group", topic, partition, "offset", at, record_id, key, headers, value, correlation_id, error, attempts, failed_at, state
from dead_letter
where tenant_id = $1 and ($2::text is null or group_name = $2) and ($3::text is null or topic = $3) and ($4::uuid is null or id < $4)
order by id desc limit $5
