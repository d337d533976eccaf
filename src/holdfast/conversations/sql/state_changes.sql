-- The changes of state in a conversation without a node, in order.
select seq, revision, state, created_at from state_change where tenant_id = $1 and root = $2 order by revision
