-- Claims the refresh of a connection for some seconds, unless another process has it or has done it. The request itself holds no lock.
update source_connection set refreshing_until = holdfast.now() + make_interval(secs => $5)
where host_id = $1 and source_id = $2 and user_name = $3 and generation = $4 and broken is null and refreshing_until <= holdfast.now()
