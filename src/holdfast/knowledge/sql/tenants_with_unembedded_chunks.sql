-- Returns tenants with chunks that have no vector of the model of their language (if that model is null, no vector at all), by a few index lookups per
-- tenant.
select t.id from tenant t, lateral (
  select from unnest($1::text[], $2::text[]) as wanted (language, model), lateral (
    (select from chunk c where c.tenant_id = t.id and c.language = wanted.language and c.embedded is null limit 1)
    union all
    (select from chunk c where c.tenant_id = t.id and c.language = wanted.language and c.embedded < wanted.model limit 1)
    union all
    (select from chunk c where c.tenant_id = t.id and c.language = wanted.language and c.embedded > wanted.model limit 1)
  ) missed limit 1
) has_work
