-- Stores the tools of an app.
select * from holdfast.declare_tools($1, $2, $3, $4)
