-- Tenants with skills or tools whose words nobody has read yet; where some model can embed ($1), with some that have no vector; and where
-- models are given ($2), with some that have one of none of these: a look at the index each.
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
