-- Stores the current tools of a source. JSON is passed as text, because it is encoded off the event loop.
select * from holdfast.store_tools($1, $2, $3, $4, $5::text[]::jsonb[], $6::text[]::jsonb[], $7, $8, $9)
