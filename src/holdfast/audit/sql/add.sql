-- Adds entries that the sealer moves into the chain. One commit for all calls that wait, without a lock that others could wait for.
-- An entry that is sent again is not added again.
insert into audit_open (tenant_id, id, entry, person, salt)
select $1, e.id, e.entry, e.person, e.salt
from unnest($2::uuid[], $3::json[], $4::json[], $5::bytea[]) as e (id, entry, person, salt)
on conflict (tenant_id, id) do nothing
