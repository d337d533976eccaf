-- Changes keys of a conversation's state, if they have the expected versions.
select * from holdfast.set_state($1, $2, $3, $4)
