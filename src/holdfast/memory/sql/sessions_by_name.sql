-- Returns the conversations that a session name can mean if no user is given; at most two.
select id from holdfast.sessions_called($1, $2)
