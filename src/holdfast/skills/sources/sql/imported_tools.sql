-- The tools that an import changed, as they were before and are since.
select c.name, c.operation, c.before, c.after from registry_change c
where c.host_id = $1 and c.revision > $2 and c.revision <= $3 and c.kind = 'tool' order by c.name, c.revision, c.number
