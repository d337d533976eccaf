-- Memories of users and agents of which less is left than counts (memory/retention.py says the same). `$2`: the half-life in days,
-- `$3`: how often it has to pass. What is younger than `$4` cannot have faded, however little it matters: it is not looked at.
select scope, owner, id from memory
where tenant_id = $1 and scope in ('user', 'agent') and not pinned and created_at < holdfast.now() - $4::interval
  and extract(epoch from holdfast.now() - last_accessed)::float8
    > 86400 * $2::float8 * $3::float8 * (0.5 + importance) * (1 + ln(1 + access_count::float8))
limit $5
