-- Takes at most $3 messages for the stream of an HTTP+SSE session. The process that takes them sends them.
with oldest as (
  select e.stream, e.number from mcp_event e
  where e.tenant_id = $1 and e.session_key = $2 order by e.stream, e.number limit $3
), taken as (
  delete from mcp_event e using oldest o
  where e.tenant_id = $1 and e.session_key = $2 and e.stream = o.stream and e.number = o.number
  returning e.stream, e.number, e.message
)
select message from taken order by stream, number
