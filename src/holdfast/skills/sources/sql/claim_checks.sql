-- Claims the due checks of a tenant, the longest due first, for the time of a lease. If the process dies, they are due again when it ends.
update source_check c set due_at = holdfast.now() + $2::interval, claimed_until = holdfast.now() + $2::interval
from tool_source o
where c.host_id = $1 and o.host_id = $1 and o.source_id = c.source_id and c.source_id = any(array(
  select d.source_id from source_check d
  where d.host_id = $1 and d.due_at <= holdfast.now() and d.claimed_until <= holdfast.now() and (d.file is null or $3)
  order by d.due_at limit $4 for update skip locked))
returning c.source_id, c.seconds, c.claimed_until, c.validators, c.failures, o.name, o.kind, o.location, o.settings, o.document_hash,
  o.aggregate_version
