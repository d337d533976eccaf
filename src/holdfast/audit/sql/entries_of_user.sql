-- Entries of one user, the newest first; of a target if one is given. The index of users leads to them.
select a.seq, a.id, a.at, a.entry::text as entry, p.person::text as person
from audit_person p join audit a on a.tenant_id = $1 and a.seq = p.seq and a.sealed_at = p.sealed_at and a.seq < $2
where p.tenant_id = $1 and p.user_name = $8 and p.seq < $2 and ($7::text is null or a.target = $7)
  and ($4::text is null or a.action = $4) and ($5::text is null or a.outcome = $5)
  and ($6::timestamptz is null or (p.sealed_at >= $6 and a.at >= $6))
order by p.seq desc limit $3
