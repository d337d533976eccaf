-- The conversations that a session's name means where no user is named; of several, two.
select id from holdfast.sessions_called($1, $2)
