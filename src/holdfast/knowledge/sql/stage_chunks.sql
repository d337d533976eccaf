-- Stores the next chunks of a job, and how far it is. Returns whether this process still holds the job.
select holdfast.stage_chunks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
