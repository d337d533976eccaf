-- Replaces the access rules of the tenant.
select outcome, version from holdfast.put_access_rules($1, $2, $3, $4, $5)
