-- Removes the definitions of tools from the history of a source's imports: of those before the newest $3, and of those that have more than $4 bytes
-- together with newer ones. The newest import keeps them. The names of the tools stay: nodes that were idle read what has changed meanwhile.
with ranked as (
  select i.revision, row_number() over newest as place, sum(i.bytes) over newest as total from source_import i
  where i.host_id = $1 and i.source_id = $2 window newest as (order by i.revision desc)
), emptied as (
  update source_import i set bytes = 0 from ranked k
  where i.host_id = $1 and i.source_id = $2 and i.revision = k.revision and i.bytes > 0 and k.place > 1 and (k.place > $3 or k.total > $4)
  returning i.since, i.revision
)
update registry_change c set before = null, after = null from emptied e
where c.host_id = $1 and c.revision > e.since and c.revision <= e.revision and c.kind = 'tool'
