-- Deletes a dead letter.
delete from dead_letter where tenant_id = $1 and id = $2
