-- The ends of all chains, to be published outside of the database.
select t.name as tenant, c.tenant_id, c.seq, c.hash, c.sealed_at from audit_chain c join tenant t on t.id = c.tenant_id order by t.name
