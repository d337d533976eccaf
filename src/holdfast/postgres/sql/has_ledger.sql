-- Whether a migration was ever applied to this database.
select to_regclass('holdfast.migration') is not null
