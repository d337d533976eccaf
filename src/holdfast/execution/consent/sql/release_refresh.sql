-- Gives up a refresh that failed for now, so that the next call can try again.
update source_connection set refreshing_until = '-infinity' where host_id = $1 and source_id = $2 and user_name = $3 and generation = $4
