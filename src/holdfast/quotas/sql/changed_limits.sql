-- Reads the limits that were set or removed after a revision, in order. A process asks for it twice a second, and mostly gets nothing.
select id, by_operator, rule, revision, update_user, update_ts from usage_limit where tenant_id = $1 and revision > $2 order by revision limit $3
