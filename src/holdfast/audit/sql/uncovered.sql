-- What no hash covers: personal data before or after the chain, and whether the end of the chain has the time of its last entry.
select (select p.seq from audit_person p where p.tenant_id = $1 and p.seq <= c.checkpoint_seq order by p.seq limit 1) as before,
  (select p.seq from audit_person p where p.tenant_id = $1 and p.seq > c.seq order by p.seq limit 1) as after,
  c.seq = c.checkpoint_seq
    or exists (select from audit a where a.tenant_id = $1 and a.seq = c.seq and a.sealed_at = c.sealed_at) as has_its_time
from audit_chain c where c.tenant_id = $1
