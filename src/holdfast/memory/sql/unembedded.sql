-- Returns memories of a language without a vector of its model; if `$3` is null, without any vector. `$4`: memories that the model refused
-- recently, which are left out.
select scope, id, owner, version, language, embedded, conversation, seq, author, content
from memory
where tenant_id = $1 and language = $2 and (embedded is null or embedded < $3 or embedded > $3) and length is not null
  and id <> all($4::uuid[])
limit $5
