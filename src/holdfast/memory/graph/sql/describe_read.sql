-- Describes entities ($2 scopes, $3 owners, $4 keys, $5 texts) that have no description.
update entities e set description = n.description
from unnest($2::text[], $3::uuid[], $4::text[], $5::text[]) as n (scope, owner, key, description)
where e.tenant_id = $1 and e.scope = n.scope and e.owner = n.owner and e.key = n.key and e.description is null
