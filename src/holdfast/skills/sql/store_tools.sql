-- Stores all that a source has now; JSON comes as text, which is written off the event loop.
select * from holdfast.store_tools($1, $2, $3, $4, $5::text[]::jsonb[], $6)
