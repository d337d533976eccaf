-- Counts the chunks that have no vector of the model of their language. If that model is null, only chunks without any vector count.
select count(*) from unnest($2::text[], $3::text[]) as wanted (language, model)
join chunk c on c.tenant_id = $1 and c.language = wanted.language
  and (c.embedded is null or c.embedded < wanted.model or c.embedded > wanted.model)
