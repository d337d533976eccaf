-- The record that is next is on trial: its owner delivers it alone, if the partition is still this member's.
update consumer_offset set on_trial = true, updated_at = holdfast.now()
where tenant_id = $1 and group_name = $2 and topic = $3 and partition = $4 and owner = $5 and epoch = $6
