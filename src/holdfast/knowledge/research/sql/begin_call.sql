-- Begins a call of a model, or returns the answer that is stored for it.
select * from holdfast.begin_research_call($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
