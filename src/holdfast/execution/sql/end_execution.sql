-- Stores the outcome of a call, unless the call was begun again since: then its lease ends at another time. A call that was given up as `unknown` gets
-- its outcome after all.
with ended as (
  update tool_executions e
  set status = $4, output_result = $5, error = $6, latency_ms = $7, finished_at = holdfast.now()
  where e.tenant_id = $1 and e.id = $2 and e.leased_until = $3 and e.status in ('running', 'unknown')
  returning e.id
), kept as (
  insert into tool_output (tenant_id, execution_id, content_type, content)
  select $1, ended.id, $8, $9 from ended where $9::bytea is not null
  on conflict (tenant_id, execution_id) do update set content_type = excluded.content_type, content = excluded.content
)
select id from ended
