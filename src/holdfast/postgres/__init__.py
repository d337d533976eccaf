"""PostgreSQL: the single source of truth.

`embedded` starts a server if the settings name none. `database` runs statements for one tenant at a time. `tenancy` has
the roles that isolate tenants. `migrate` updates the schema. `backup` dumps and restores the database.
Import from the modules: the process that owns the embedded server must stay small and never load the driver.
"""
