-- Makes a skill depend on another one.
select * from holdfast.link_need($1, $2, $3, $4, $5, $6)
