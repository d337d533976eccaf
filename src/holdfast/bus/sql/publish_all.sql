-- Appends records, each to its topic. Records whose topic does not exist are missing in the answer.
select * from holdfast.publish_all($1, $2, $3, $4, $5, $6, $7, $8)
