-- Tenants with skills or tools that have no terms; that have no vector, if a model can embed ($1); or that have a vector of another model than those
-- in $2, if given. Takes one index lookup each.
select t.id from tenant t, lateral (
  (select from skill_t s where s.host_id = t.id and s.terms is null limit 1)
  union all
  (select from tool_t o where o.host_id = t.id and o.terms is null limit 1)
  union all
  (select from skill_t s where s.host_id = t.id and s.embedded is null and $1::boolean limit 1)
  union all
  (select from tool_t o where o.host_id = t.id and o.embedded is null and $1::boolean limit 1)
  union all
  (select from skill_t s where s.host_id = t.id and s.embedded <> all($2::text[]) limit 1)
  union all
  (select from tool_t o where o.host_id = t.id and o.embedded <> all($2::text[]) limit 1)
  limit 1
) has_work
