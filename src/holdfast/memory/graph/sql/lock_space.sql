-- Has merges of one owner wait for each other until the commit: two at once could close a circle.
select pg_advisory_xact_lock(hashtextextended(concat('graph', $1::uuid, $2::text, $3::uuid), 0))
