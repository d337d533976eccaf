-- What runs answer: the beginning of each message; nothing of one that was deleted.
select r.id, left(n.content, 200) as question
from runs r join node n on n.tenant_id = $1 and n.id = r.trigger
where r.tenant_id = $1 and r.id = any($2::uuid[]) and not n.deleted
