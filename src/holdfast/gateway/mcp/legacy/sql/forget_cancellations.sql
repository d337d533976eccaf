-- Forgets the cancellations of a session that are older than $3, and all but its $4 newest ones.
-- Old ones have done their work: a process learns of a cancellation within a second.
delete from mcp_cancellation c
where c.tenant_id = $1 and c.session_key = $2 and (
  c.at < holdfast.now() - $3::interval
  or c.request in (
    select n.request from mcp_cancellation n
    where n.tenant_id = $1 and n.session_key = $2
    order by n.at desc, n.request offset $4
  )
)
