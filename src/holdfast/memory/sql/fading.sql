-- Returns faded memories of users and agents, by the formula of functions/half_lives.sql. `$2`: the half-life in days, `$3`: the number of
-- half-lives after which a memory has faded. Memories younger than `$4` cannot have faded, even with importance 0, and are not read.
select scope, owner, id from memory
where tenant_id = $1 and scope in ('user', 'agent') and not pinned and created_at < holdfast.now() - $4::interval
  and holdfast.half_lives(extract(epoch from holdfast.now() - last_accessed)::float8, $2, importance, access_count) > $3::float8
limit $5
