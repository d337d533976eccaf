-- See functions/put_source.sql.
select outcome, source, version, revision from holdfast.put_source($1, $2, $3, $4, $5, $6)
