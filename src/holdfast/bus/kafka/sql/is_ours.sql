-- Whether our log has a record with this id ($5) at this offset ($4). If retention has dropped the record, its id is not compared.
select $5::uuid is not null and p.next_offset > $4 and not exists (
  select from record r
  where r.tenant_id = $1 and r.topic = $2 and r.partition = $3 and r."offset" = $4 and r.id <> $5
)
from topic_partition p
where p.tenant_id = $1 and p.topic = $2 and p.partition = $3
