-- Returns the pairs of entities whose merge was undone: they are no duplicates.
select m.keep_id, m.other_id from entity_merges m where m.tenant_id = $1 and m.undone_at is not null and m.keep_id = any($2)
