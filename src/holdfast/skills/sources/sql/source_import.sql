-- An import of a source, by its revision, or the last one ($3 is null).
select i.* from source_import i
where i.host_id = $1 and i.source_id = (select o.source_id from tool_source o where o.host_id = $1 and o.name = $2)
  and ($3::bigint is null or i.revision = $3)
order by i.revision desc limit 1
