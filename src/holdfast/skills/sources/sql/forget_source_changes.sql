-- Deletes the changes of a source itself that the person $4 made, that are older than $5 and belong to no import.
delete from registry_change c
where c.host_id = $1 and c.kind = 'source' and c.name = $3 and c.operation = 'changed' and c.update_user = $4 and c.at < holdfast.now() - $5::interval
  and not exists (select from source_import i where i.host_id = $1 and i.source_id = $2 and c.revision > i.since and c.revision <= i.revision)
