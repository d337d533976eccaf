-- See functions/remove_source.sql.
select outcome, version, tools from holdfast.remove_source($1, $2, $3, $4, $5)
