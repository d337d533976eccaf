-- Copies a conversation up to a node.
select holdfast.fork_conversation($1, $2, $3, $4, $5, $6, $7)
