-- Creates the conversation of a session that gets a memory before its first message.
select holdfast.create_conversation($1, $2, $3, $4, $5, $6, $7, null, null)
