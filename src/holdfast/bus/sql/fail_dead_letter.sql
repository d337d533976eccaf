-- Stores the error of a redriven dead letter that failed again.
update dead_letter set error = $3, failed_at = holdfast.now() where tenant_id = $1 and id = $2
