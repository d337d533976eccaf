-- Records an applied migration.
insert into holdfast.migration (name, hash) values ($1, $2)
