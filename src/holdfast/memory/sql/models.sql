-- Returns the models whose vectors memories have, by language. A skip scan: a few index lookups, however many memories
-- there are.
with recursive known (language, model) as (
  select l.language, (
    select min(m.embedded) from memory m where m.tenant_id = $1 and m.language = l.language and m.embedded is not null)
  from unnest(array['en', 'zh', 'other']) as l (language)
  union all
  select k.language, (
    select min(m.embedded) from memory m where m.tenant_id = $1 and m.language = k.language and m.embedded > k.model)
  from known k where k.model is not null
)
select distinct language, rtrim(model) as model from known where model is not null
