-- Counts the memories that the Indexer has to process: unread ones, and those without a vector of the model of their language. If that
-- model is null, only memories without any vector count.
select (select count(*) from memory where tenant_id = $1 and length is null)
  + (select count(*) from unnest($2::text[], $3::text[]) as wanted (language, model)
     join memory m on m.tenant_id = $1 and m.language = wanted.language
       and (m.embedded is null or m.embedded < wanted.model or m.embedded > wanted.model))
