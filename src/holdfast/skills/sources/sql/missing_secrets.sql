-- Those of these secrets that do not exist.
select n.name from unnest($2::text[]) n (name)
where not exists (select from secret s where s.host_id = $1 and s.name = n.name) order by n.name
