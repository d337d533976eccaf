-- Returns the beginning of the message that each run answers, without deleted messages.
select r.id, left(n.content, 200) as question
from runs r join node n on n.tenant_id = $1 and n.id = r.trigger
where r.tenant_id = $1 and r.id = any($2::uuid[]) and not n.deleted
