-- A user's first message in each of some conversations, shortened. It is searched among the first nodes, so a conversation in which only
-- programs speak is not read to its end. The role is determined as in conversations/payloads.py.
select talk.root, first.content
from unnest($2::uuid[]) as talk (root), lateral (
  select left(n.content, $4) as content from node n
  where n.tenant_id = $1 and n.root = talk.root and n.seq between 1 and $3 and not n.deleted and n.content ~ '\S'
    and coalesce(n.payload ->> 'role', case when n.context_name in ('agent', 'system') then n.context_name else 'user' end) = 'user'
  order by n.seq limit 1
) first
