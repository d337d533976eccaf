-- Appends a record to its topic; its partition and offset, or nothing where there is no such topic.
select * from holdfast.publish($1, $2, $3, $4, $5, $6, $7, $8)
