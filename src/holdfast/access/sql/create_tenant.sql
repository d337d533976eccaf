-- Creates a tenant.
insert into tenant (name) values ($1) returning id, name, created_at
