-- Makes the conversation of a session in which something is remembered before anything is said.
select holdfast.create_conversation($1, $2, $3, $4, $5, $6, $7, null, null)
