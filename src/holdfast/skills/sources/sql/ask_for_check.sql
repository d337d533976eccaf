-- Makes a check of a source due now, unless it is never checked.
update source_check set due_at = holdfast.now()
where host_id = $1 and seconds is distinct from 0
  and source_id = (select o.source_id from tool_source o where o.host_id = $1 and o.name = $2)
