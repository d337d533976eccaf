-- Returns which of the digests have vectors of their model already: among the staged chunks of the job, or in the document's current version. A lateral
-- subquery with a limit looks each digest up, where a join may read all chunks of the document for every batch.
select g.digest, g.model
from unnest($4::uuid[], $5::text[]) as g (digest, model)
cross join lateral (
  (select from ingest_chunk s
   where s.tenant_id = $1 and s.job_id = $2 and s.digest = g.digest and s.model = g.model and s.vectors is not null limit 1)
  union all
  (select from chunk c where c.tenant_id = $1 and c.document_id = $3 and c.digest = g.digest and c.embedded = g.model limit 1)
  limit 1) made
