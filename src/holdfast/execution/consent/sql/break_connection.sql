-- Notes that a user has to connect again, unless the tokens have changed in the meantime.
update source_connection set broken = $5, refreshing_until = '-infinity', updated_at = holdfast.now()
where host_id = $1 and source_id = $2 and user_name = $3 and generation = $4 and broken is null
