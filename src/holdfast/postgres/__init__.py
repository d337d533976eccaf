"""PostgreSQL, the only judge of what happened.

`embedded` starts a server where none is given, `database` runs statements for one tenant at a time, `tenancy` holds the
roles that keep tenants apart, `migrate` brings the schema up to date, `backup` dumps and restores it.
Import from the modules: the process that owns the embedded server must stay small and never load the driver.
"""
