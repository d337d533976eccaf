-- Puts the next record of a partition on trial, if this member still owns the partition. The owner then delivers it alone.
update consumer_offset set on_trial = true, updated_at = holdfast.now()
where tenant_id = $1 and group_name = $2 and topic = $3 and partition = $4 and owner = $5 and epoch = $6
