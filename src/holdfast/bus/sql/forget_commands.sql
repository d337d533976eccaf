-- Deletes commands that finished long ago, a bounded number at a time. Returns how many.
select holdfast.forget_commands($1, $2)
