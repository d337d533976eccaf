-- The messages on a stream after a number, in order.
select e.number, e.message from mcp_event e
where e.tenant_id = $1 and e.session_key = $2 and e.stream = $3 and e.number > $4 order by e.number limit $5
