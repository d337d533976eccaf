-- The tenants who have entries to seal. One look into the index for each tenant: entries may come faster than they are sealed.
select t.id from tenant t, lateral (select o.id from audit_open o where o.tenant_id = t.id order by o.id limit 1) oldest order by t.id
