-- Returns the turn before each of the given places in conversations.
select asked.place, said.seq, said.content, said.author
from unnest($4::int[], $5::text[], $6::bigint[]) as asked (place, conversation, seq), lateral (
  select m.seq, m.content, m.author from memory m
  where m.tenant_id = $1 and m.scope = $2 and m.owner = $3 and m.conversation = asked.conversation and m.seq < asked.seq
  order by m.seq desc limit 1
) said
