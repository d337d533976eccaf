-- Tenants with memories that nobody has read yet, or that have no vector of the model of their language (where that is null, none at all):
-- one look at the index each.
select t.id from tenant t, lateral (
  (select from memory m where m.tenant_id = t.id and m.length is null limit 1)
  union all
  (select from unnest($1::text[], $2::text[]) as wanted (language, model), lateral (
     (select from memory m where m.tenant_id = t.id and m.language = wanted.language and m.embedded is null limit 1)
     union all
     (select from memory m where m.tenant_id = t.id and m.language = wanted.language and m.embedded < wanted.model limit 1)
     union all
     (select from memory m where m.tenant_id = t.id and m.language = wanted.language and m.embedded > wanted.model limit 1)
   ) missed limit 1)
  limit 1
) has_work
