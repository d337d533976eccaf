-- For how long the oldest open entry of each tenant has waited, the longest first. One look into the index for each tenant.
select t.name as tenant, coalesce(greatest(extract(epoch from holdfast.now() - oldest.at), 0), 0)::float8 as seconds
from tenant t left join lateral (select o.at from audit_open o where o.tenant_id = t.id order by o.id limit 1) oldest on true
where $1::uuid is null or t.id = $1
order by seconds desc, t.name limit $2
