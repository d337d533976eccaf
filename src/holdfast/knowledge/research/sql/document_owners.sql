-- Whose the named documents are.
select d.id, d.scope, d.owner, d.agent_id from document d where d.tenant_id = $1 and d.id = any($2)
