-- Creates or changes an agent.
select * from holdfast.put_agent($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
