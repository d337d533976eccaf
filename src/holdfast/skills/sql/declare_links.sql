-- Links the skills and agents of a program; JSON comes as text, for the driver would take lists of lists for arrays of more dimensions.
select * from holdfast.declare_links($1, $2, $3::text[]::jsonb[], $4::text[]::jsonb[], $5, $6::text[]::jsonb[])
