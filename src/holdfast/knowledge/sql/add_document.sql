-- Makes or changes a document, and makes a job of its new version. Without a change, `job_id` is null.
select added.job_id, (added.stored).*
from holdfast.add_document($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) as added
