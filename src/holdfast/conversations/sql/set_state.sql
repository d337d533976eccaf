-- Changes keys of a conversation's state, if they have the versions expected.
select * from holdfast.set_state($1, $2, $3, $4)
