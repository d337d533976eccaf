-- The dead letters of a group ($2) and a topic ($3), or of all, oldest first, without redriven ones.
select id from dead_letter
where tenant_id = $1 and state = 'dead' and ($2::text is null or group_name = $2) and ($3::text is null or topic = $3)
order by id
