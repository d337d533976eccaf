-- Returns those of these names that no tool has.
select n.name from unnest($2::text[]) n (name) where not exists (select from tool_t t where t.host_id = $1 and t.name = n.name)
