-- Stores the last chunks of a job and replaces its document, in one step. Returns the document's collection, or null if this process lost the job.
select holdfast.stage_and_commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
