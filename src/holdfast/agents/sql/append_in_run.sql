-- Stores what a run does in a step: the model's reply, calls that start, the outcome of a call, and new nodes.
select * from holdfast.append_in_run($1, $2, $3, $4, $5, $6, $7, $8)
