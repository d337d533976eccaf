-- Removes a topic with its records and the positions of its groups; whether there was one.
select holdfast.remove_topic($1, $2)
