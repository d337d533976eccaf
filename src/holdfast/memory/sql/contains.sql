-- Whether a memory's metadata contain what a filter asks for.
select metadata @> $3 from memory where tenant_id = $1 and id = $2
