-- Deletes commands that were finished long ago, some at a time; how many.
select holdfast.forget_commands($1, $2)
