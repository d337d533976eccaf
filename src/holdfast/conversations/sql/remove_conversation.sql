-- Removes a conversation; whether it was there.
select holdfast.remove_conversation($1, $2)
