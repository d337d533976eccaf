-- Creates a conversation with its root.
select * from holdfast.create_conversation($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
