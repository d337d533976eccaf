-- Claims the check of one source, although it is not due, unless another process is at it.
update source_check c set due_at = holdfast.now() + $2::interval, claimed_until = holdfast.now() + $2::interval
from tool_source o
where c.host_id = $1 and o.host_id = $1 and o.source_id = c.source_id and c.source_id = $3 and c.claimed_until <= holdfast.now()
returning c.source_id, c.seconds, c.claimed_until, c.validators, c.failures, o.name, o.kind, o.location, o.settings, o.document_hash,
  o.aggregate_version
