-- Stores the tools of a program.
select * from holdfast.declare_tools($1, $2, $3, $4)
