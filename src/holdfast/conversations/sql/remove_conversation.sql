-- Deletes a conversation; returns whether it existed.
select holdfast.remove_conversation($1, $2)
