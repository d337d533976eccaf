-- Counts the expired memories of each scope.
select scope, count(*) as memories from memory
where tenant_id = $1 and expires_at < 'infinity' and expires_at <= holdfast.now()
group by scope
