-- Ends the replacement of a document.
select holdfast.end_version($1, $2, $3, $4)
