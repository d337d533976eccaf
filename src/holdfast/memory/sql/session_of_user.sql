-- Returns the conversation of a session name for a user: the user's own, otherwise one without a user.
select id from holdfast.session_for($1, $2, $3, 'default', true)
