-- Stores a record that a group gives up as a dead letter, only once.
insert into dead_letter (tenant_id, group_name, topic, partition, "offset", at, record_id, key, headers, value, error, attempts)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
on conflict (tenant_id, group_name, topic, partition, "offset", record_id) do nothing
