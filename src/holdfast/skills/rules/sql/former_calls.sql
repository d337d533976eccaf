-- The latest calls of the tools of the registry, newest first; those before the execution $3, if it is given.
select e.id, e.tool_id, e.input_params, e.user_name, e.agent, e.created_at
from tool_executions e where e.tenant_id = $1 and e.tool_id is not null and e.id < coalesce($3, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
order by e.id desc limit $2
