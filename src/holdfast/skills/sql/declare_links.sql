-- Links the skills and agents of an app. JSON is passed as text, because the driver would take lists of lists for multidimensional arrays.
select * from holdfast.declare_links($1, $2, $3::text[]::jsonb[], $4::text[]::jsonb[], $5, $6::text[]::jsonb[])
