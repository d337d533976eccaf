-- Appends a record to its topic. Returns its partition and offset, or nulls if the topic does not exist.
select * from holdfast.publish($1, $2, $3, $4, $5, $6, $7, $8)
