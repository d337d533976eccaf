-- Counts the faded memories of each scope, by the conditions of fading.sql.
select scope, count(*) as memories from memory
where tenant_id = $1 and scope in ('user', 'agent') and not pinned and created_at < holdfast.now() - $4::interval
  and holdfast.half_lives(extract(epoch from holdfast.now() - last_accessed)::float8, $2, importance, access_count) > $3::float8
group by scope
