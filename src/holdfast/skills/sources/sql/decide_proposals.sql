-- See functions/decide_proposals.sql.
select outcome, tools, names, changes, revision from holdfast.decide_proposals($1, $2, $3, $4, $5, $6)
