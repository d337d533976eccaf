-- Returns faded memories of users and agents, by the formula of memory/retention.py. `$2`: the half-life in days, `$3`: the number of
-- half-lives after which a memory has faded. Memories younger than `$4` cannot have faded, even with importance 0, and are not read.
select scope, owner, id from memory
where tenant_id = $1 and scope in ('user', 'agent') and not pinned and created_at < holdfast.now() - $4::interval
  and extract(epoch from holdfast.now() - last_accessed)::float8
    > 86400 * $2::float8 * $3::float8 * (0.5 + importance) * (1 + ln(1 + access_count::float8))
limit $5
