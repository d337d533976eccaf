-- The first thing that a user said in each of some conversations, cut short, among its first nodes: one in which only programs speak is
-- not read to its end. Who speaks is told as conversations/payloads.py tells it.
select talk.root, first.content
from unnest($2::uuid[]) as talk (root), lateral (
  select left(n.content, $4) as content from node n
  where n.tenant_id = $1 and n.root = talk.root and n.seq between 1 and $3 and not n.deleted and n.content ~ '\S'
    and coalesce(n.payload ->> 'role', case when n.context_name in ('agent', 'system') then n.context_name else 'user' end) = 'user'
  order by n.seq limit 1
) first
