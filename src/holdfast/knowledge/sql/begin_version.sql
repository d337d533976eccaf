-- Begins to replace a document by the staged version of a job.
select * from holdfast.begin_version($1, $2, $3)
