-- The steps that have run.
select name, hash from holdfast.migration
