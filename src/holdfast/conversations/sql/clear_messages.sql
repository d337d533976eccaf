-- Empties every message of a conversation; whether the conversation is there.
select holdfast.clear_messages($1, $2)
