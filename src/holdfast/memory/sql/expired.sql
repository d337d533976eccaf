-- Returns expired memories.
select scope, owner, id from memory
where tenant_id = $1 and expires_at < 'infinity' and expires_at <= holdfast.now()
limit $2
