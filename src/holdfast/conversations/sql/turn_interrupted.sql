-- Whether a claim was interrupted; no row if it no longer exists.
select interrupted from turn_claim where tenant_id = $1 and root = $2 and number = $3
