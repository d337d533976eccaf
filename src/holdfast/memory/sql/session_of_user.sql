-- The conversation that a user means by a session's name: theirs, or nobody's.
select id from holdfast.session_for($1, $2, $3, 'default', true)
