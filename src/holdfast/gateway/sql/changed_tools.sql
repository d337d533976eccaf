-- What was changed in the registry after a revision, as far as entries of tools tell of it: the names of tools; one that is null where a
-- source was changed, which all of its tools tell of; and an empty one for all else, such as skills and agents, which each view reads anew.
-- The kind is no condition: with it the planner would go through the changes of all times by another index.
select distinct case c.kind when 'tool' then c.name when 'source' then null else '' end as name from registry_change c
where c.host_id = $1 and c.revision > $2
