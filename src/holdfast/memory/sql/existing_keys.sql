-- Returns those of the given keys that a memory of the owner has, or that a deleted one had.
select m.key from memory m where m.tenant_id = $1 and m.scope = $2 and m.owner = $3 and m.key = any($4)
union all
select asked.key from unnest($4::text[], $5::bytea[]) as asked (key, hash)
join memory_tombstone t on t.tenant_id = $1 and t.scope = $2 and t.owner = $3 and t.key_hash = asked.hash
where t.key_hash = any($5)
