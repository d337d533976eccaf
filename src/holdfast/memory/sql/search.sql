-- What answers a question best, of each of the owners; several owners in one round trip.
select (found.memory).id, (found.memory).scope, (found.memory).owner, (found.memory).agent_id, (found.memory).user_id,
  (found.memory).content, (found.memory).type, (found.memory).importance, (found.memory).trust, (found.memory).metadata,
  (found.memory).source, (found.memory).key, (found.memory).conversation, (found.memory).seq, (found.memory).author,
  (found.memory).said_at, (found.memory).created_at, (found.memory).valid_from, (found.memory).valid_to, (found.memory).expires_at,
  (found.memory).superseded_by, (found.memory).pinned, (found.memory).buried_at, (found.memory).embedded,
  (found.memory).access_count, (found.memory).last_accessed, (found.memory).version, found.parts, found.score
from unnest($2::text[], $3::uuid[], $4::uuid[], $5::int[], $6::float8[]) as sought (scope, owner, agent, wanted, min_importance),
  lateral holdfast.search_memories(
    $1, sought.scope, sought.owner, sought.agent, sought.wanted,
    $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, sought.min_importance, $21, $22, $23, $24, $25, $26, $27
  ) found
