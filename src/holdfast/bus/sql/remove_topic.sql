-- Removes a topic, its records and the positions of its groups. Returns whether it existed.
select holdfast.remove_topic($1, $2)
