-- Makes staged chunks of a job chunks of its document.
select holdfast.insert_chunks($1, $2, $3, $4, $5)
