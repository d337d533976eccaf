-- When checks of sources are due within some seconds: the tenants, and the seconds until their first one. One that is claimed waits for that.
-- Files are due only where they can be read ($2).
select c.host_id as id, extract(epoch from min(greatest(c.due_at, c.claimed_until)) - holdfast.now())::float8 as seconds
from source_check c
where c.due_at <= holdfast.now() + $1::float8 * interval '1 second' and (c.file is null or $2)
group by c.host_id order by 2
