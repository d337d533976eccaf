-- Entries of the chain with everything that their hashes cover, in the order of the chain. Both tables are limited to later numbers: a merge
-- join would otherwise read the personal data of all entries before.
select a.seq, a.id, a.at, a.sealed_at, a.entry::text as entry, a.previous, a.hash, p.salt, p.person::text as person
from audit a
left join audit_person p on p.tenant_id = $1 and p.seq = a.seq and p.sealed_at = a.sealed_at and p.seq > $2
where a.tenant_id = $1 and a.seq > $2
order by a.seq limit $3
