-- Returns the merges into these entities.
select m.id, m.keep_id, m.other_id, m.memory_id, m.created_at, m.undone_at from entity_merges m
where m.tenant_id = $1 and m.keep_id = any($2) order by m.id
