-- The documents that a research may read, and how many chunks and tokens they have; the largest first.
select d.id, d.name, d.title, d.collection, d.version, d.pages, d.chunks, d.characters, count(*) over () as documents, (sum(d.chunks) over ())::bigint as all_chunks,
  (sum(d.characters) over ())::bigint as all_characters
from document d
where d.tenant_id = $1 and d.chunks > 0 and (d.scope, d.owner) in (select * from unnest($2::text[], $3::uuid[]))
  and ($4::text[] is null or d.collection = any($4)) and ($5::uuid[] is null or d.id = any($5))
order by d.chunks desc, d.id limit $6
