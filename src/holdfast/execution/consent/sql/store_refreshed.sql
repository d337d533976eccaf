-- Stores refreshed tokens, unless the user has disconnected or connected again in the meantime.
update source_connection set sealed = $5, key_id = $6, scopes = $7, refreshable = $8,
  expires_at = holdfast.now() + make_interval(secs => $9), generation = generation + 1, refreshing_until = '-infinity', updated_at = holdfast.now()
where host_id = $1 and source_id = $2 and user_name = $3 and generation = $4
