-- Deletes the imports of a source before the newest $3 that are older than $4, and the definitions of tools from before them.
with kept as (
  select i.revision from source_import i where i.host_id = $1 and i.source_id = $2 order by i.revision desc offset $3 limit 1
), old as (
  delete from source_import i
  where i.host_id = $1 and i.source_id = $2 and i.revision <= (select k.revision from kept k) and i.at < holdfast.now() - $4::interval
  returning i.since, i.revision
)
delete from registry_change c using old o where c.host_id = $1 and c.revision > o.since and c.revision <= o.revision
