-- Deletes a redriven dead letter whose record is done.
delete from dead_letter where tenant_id = $1 and id = $2
