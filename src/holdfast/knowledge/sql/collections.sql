-- Counts the documents and chunks of collections: of all owners, or of some; of all collections, or of some.
select d.collection, count(*)::int as documents, sum(d.chunks)::int as chunks
from document d
where d.tenant_id = $1 and ($2::text[] is null or (d.scope, d.owner) in (select o.scope, o.owner from unnest($2, $3::uuid[]) as o (scope, owner)))
  and ($4::text[] is null or d.collection = any($4))
group by d.collection order by d.collection
