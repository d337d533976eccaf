-- Whether a claim was interrupted; no row: it is gone.
select interrupted from turn_claim where tenant_id = $1 and root = $2 and number = $3
