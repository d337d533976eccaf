-- Undoes a merge, and all that state the same. One that somebody made is deleted; one that a text states is kept as undone, so that reading the
-- text again does not repeat it. Returns both entities.
with same as (
  select n.id, n.memory_id, n.other_id, n.keep_id from entity_merges m
  join entity_merges n on n.tenant_id = $1 and n.keep_id = m.keep_id and n.other_id = m.other_id
  where m.tenant_id = $1 and m.id = $2
), deleted as (
  delete from entity_merges m using same s where m.tenant_id = $1 and m.id = s.id and s.memory_id is null
), undone as (
  update entity_merges m set undone_at = holdfast.now() from same s where m.tenant_id = $1 and m.id = s.id and s.memory_id is not null
)
select s.keep_id, s.other_id from same s limit 1
