-- One dead letter.
select
  id, group_name as "group", topic, partition, "offset", at, record_id, key, headers, value, correlation_id, error, attempts, failed_at, state
from dead_letter where tenant_id = $1 and id = $2
