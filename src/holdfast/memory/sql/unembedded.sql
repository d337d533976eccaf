-- Memories of a language that have no vector of its model, or, where `$3` is null, none at all; but for those that the model has just refused.
select scope, id, owner, version, language, embedded, conversation, seq, author, content
from memory
where tenant_id = $1 and language = $2 and (embedded is null or embedded < $3 or embedded > $3) and length is not null
  and id <> all($4::uuid[])
limit $5
