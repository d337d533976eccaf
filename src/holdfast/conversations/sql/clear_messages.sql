-- Empties every message of a conversation.
select * from holdfast.clear_messages($1, $2)
