-- Creates or changes a skill, with its files.
select * from holdfast.put_skill($1, $2, $3, $4, $5, $6, $7, $8)
