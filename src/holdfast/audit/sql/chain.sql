-- The end of a chain, its checkpoint, and how old the oldest entry is that is not in it yet.
select t.id as tenant_id, c.seq, c.hash, c.checkpoint_seq, c.checkpoint_hash,
  extract(epoch from holdfast.now() - (select o.at from audit_open o where o.tenant_id = $1 order by o.id limit 1))::float8 as waits
from (values ($1::uuid)) t (id) left join audit_chain c on c.tenant_id = t.id
