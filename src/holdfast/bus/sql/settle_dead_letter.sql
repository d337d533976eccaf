-- A dead letter that was delivered once more is done.
delete from dead_letter where tenant_id = $1 and id = $2
