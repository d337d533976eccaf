-- Entries after a number that fit, the oldest first: to follow the chain, which adds entries only at its end.
select a.seq, a.id, a.at, a.entry::text as entry, p.person::text as person
from audit a
left join audit_person p on p.tenant_id = $1 and p.seq = a.seq and p.sealed_at = a.sealed_at and p.seq > $2
where a.tenant_id = $1 and a.seq > $2 and ($4::text is null or a.action = $4) and ($5::text is null or a.outcome = $5)
  and ($6::timestamptz is null or a.at >= $6) and ($7::text is null or a.target = $7) and ($8::text is null or p.user_name = $8)
order by a.seq limit $3
