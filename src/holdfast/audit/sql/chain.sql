-- The end of a chain, its checkpoint, and how long the oldest entry waits that is not in it yet. No row: the chain has no entry yet.
select c.seq, c.hash, c.checkpoint_seq, c.checkpoint_hash,
  (select extract(epoch from holdfast.now() - o.at) from audit_open o where o.tenant_id = $1 order by o.id limit 1)::float8 as waits
from audit_chain c where c.tenant_id = $1
