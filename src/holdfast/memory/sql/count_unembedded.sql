-- How many memories have no vector of the model of their language (where that is null, none at all), or were not read yet.
select (select count(*) from memory where tenant_id = $1 and length is null)
  + (select count(*) from unnest($2::text[], $3::text[]) as wanted (language, model)
     join memory m on m.tenant_id = $1 and m.language = wanted.language
       and (m.embedded is null or m.embedded < wanted.model or m.embedded > wanted.model))
