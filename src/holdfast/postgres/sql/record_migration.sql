-- A step has run.
insert into holdfast.migration (name, hash) values ($1, $2)
