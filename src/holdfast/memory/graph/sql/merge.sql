-- Records that an entity ($3) is the same as another ($2), and returns the id of the merge.
insert into entity_merges (tenant_id, keep_id, other_id) values ($1, $2, $3) returning id
