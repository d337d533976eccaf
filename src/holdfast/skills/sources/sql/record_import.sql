-- Records an import that changed tools. It changed the registry after the revision `since` up to the current one, which is locked.
insert into source_import (host_id, source_id, revision, since, label, added, changed, removed, deactivated, update_user)
select $1, $2, r.revision, $3, $4, $5, $6, $7, $8, $9 from registry r where r.host_id = $1
on conflict do nothing
