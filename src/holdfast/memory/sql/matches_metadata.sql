-- Returns whether the metadata of a memory match a filter.
select metadata @> $3 from memory where tenant_id = $1 and id = $2
