-- Entries that fit, the newest first. The personal data is joined one by one: of most entries that fit it is there.
select a.seq, a.id, a.at, a.entry::text as entry, p.person::text as person
from audit a
left join audit_person p on p.tenant_id = $1 and p.seq = a.seq and p.sealed_at = a.sealed_at and p.seq < $2
where a.tenant_id = $1 and a.seq < $2 and ($4::text is null or a.action = $4) and ($5::text is null or a.outcome = $5)
  and ($6::timestamptz is null or (a.sealed_at >= $6 and a.at >= $6))
order by a.seq desc limit $3
