-- Returns tenants with memories that are unread, or have no vector of the model of their language (if that model is null, no vector at all),
-- by a few index lookups per tenant.
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
