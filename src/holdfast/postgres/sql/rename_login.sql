-- Records a new login of a tenant.
update holdfast.tenant_login set login = $2, created_at = holdfast.now() where tenant_id = $1
