-- Counts the faded memories of each scope, by the conditions of fading.sql.
select scope, count(*) as memories from memory
where tenant_id = $1 and scope in ('user', 'agent') and not pinned and created_at < holdfast.now() - $4::interval
  and extract(epoch from holdfast.now() - last_accessed)::float8
    > 86400 * $2::float8 * $3::float8 * (0.5 + importance) * (1 + ln(1 + access_count::float8))
group by scope
