-- Records an import that changed tools. It changed the registry after the revision `since` up to the current one, which is locked.
insert into source_import (host_id, source_id, revision, since, label, added, changed, removed, deactivated, held, update_user, bytes)
select $1, $2, r.revision, $3, $4, $5, $6, $7, $8, $9, $10, (
  select coalesce(sum(coalesce(pg_column_size(c.before), 0) + coalesce(pg_column_size(c.after), 0)), 0) from registry_change c
  where c.host_id = $1 and c.revision > $3 and c.revision <= r.revision and c.kind = 'tool')
from registry r where r.host_id = $1
on conflict do nothing
