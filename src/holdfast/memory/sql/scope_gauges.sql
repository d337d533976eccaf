-- Counts memories per tenant and scope, of all tenants or of one ($1): all of them, and those that are unread or have no vector of the
-- model of their language ($3, $4). Returns at most $2 rows, ordered by tenant. Index-only: the memories themselves are not read.
select tenant.name as tenant, counted.scope, counted.memories, coalesce(missing.memories, 0) as unembedded
from (
  select m.tenant_id, m.scope, count(*) as memories from memory m where $1::uuid is null or m.tenant_id = $1 group by m.tenant_id, m.scope
) counted
join tenant on tenant.id = counted.tenant_id
left join (
  select lacking.tenant_id, lacking.scope, count(*) as memories
  from (
    select m.tenant_id, m.scope from memory m where m.length is null
    union all
    select m.tenant_id, m.scope
    from tenant t
    cross join unnest($3::text[], $4::text[]) as wanted (language, model)
    join memory m on m.tenant_id = t.id and m.language = wanted.language
      and (m.embedded is null or m.embedded < wanted.model or m.embedded > wanted.model)
    where wanted.model is not null and ($1::uuid is null or t.id = $1)
  ) lacking
  group by lacking.tenant_id, lacking.scope
) missing on missing.tenant_id = counted.tenant_id and missing.scope = counted.scope
order by tenant.name, counted.scope limit $2
