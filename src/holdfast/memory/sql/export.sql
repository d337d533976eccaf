-- Returns a page of memories after ($5, $6), ordered by owner and id, each with its vectors and revisions; of the owners from $3 to $4.
-- A vector from the client has the model ''. The model of a vector that has to be recomputed ends with a space. Expired memories are left
-- out, also if they are not deleted yet.
select m.*, v.models, v.embeddings, r.revisions
from memory m
left join lateral (
  select array_agg(case v.model when '' then '' else m.embedded end order by v.model) as models, array_agg(v.embedding order by v.model) as embeddings
  from memory_vector v
  where v.tenant_id = $1 and v.scope = m.scope and v.owner = m.owner and v.model = any(array[rtrim(m.embedded), '']) and v.memory_id = m.id
) v on true
left join lateral (
  select jsonb_agg(to_jsonb(r) - 'tenant_id' - 'memory_id' order by r.version) as revisions from memory_revision r
  where r.tenant_id = $1 and r.memory_id = m.id
) r on true
where m.tenant_id = $1 and m.scope = $2 and m.owner between $3 and $4 and (m.owner, m.id) > ($5, $6) and m.expires_at > holdfast.now()
order by m.owner, m.id limit $7
