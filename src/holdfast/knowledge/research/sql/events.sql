-- The events of a research after a number, oldest first.
select seq, kind, data, at from research_event where tenant_id = $1 and research_id = $2 and seq > $3 order by seq limit $4
