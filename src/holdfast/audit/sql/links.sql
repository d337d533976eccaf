-- Entries of the chain with everything that their hashes cover, in the order of the chain. Both tables are limited to later numbers: a merge
-- join would otherwise read the personal data of all entries before. With ties: if a number has several rows, all of them are here. Personal
-- data with another time than its entry comes first, and has no salt, so that it does not verify.
select seq, id, at, sealed_at, entry, previous, hash, case when has_its_time then salt end as salt, person from (
  select a.seq, a.id, a.at, a.sealed_at, a.entry::text as entry, a.previous, a.hash, p.salt, p.person::text as person,
    p.sealed_at = a.sealed_at as has_its_time
  from audit a left join audit_person p on p.tenant_id = $1 and p.seq = a.seq and p.seq > $2
  where a.tenant_id = $1 and a.seq > $2
  order by a.seq fetch first ($3) rows with ties
) link order by seq, sealed_at, has_its_time
