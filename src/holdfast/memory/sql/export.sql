-- A page of memories behind one of them, in the order of owners and ids, each with its vectors (the client's own has the model '', one
-- that is to be made anew a blank at the end of it) and with what it was; of one owner, or of all from $3 to $4. What has expired is gone,
-- whether it was deleted yet or not.
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
