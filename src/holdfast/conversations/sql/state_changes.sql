-- Changes of a conversation's state that came without a node, in their order.
select seq, revision, state, created_at from state_change where tenant_id = $1 and root = $2 order by revision
