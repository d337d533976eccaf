-- The names of the tools that changed in the registry after a revision. Null stands for a changed source: it affects all of its tools.
-- An empty name stands for any other change, such as of skills and agents: new views read these again.
-- There is no condition on the kind: with one, the planner would scan the changes of all revisions by another index.
select distinct case c.kind when 'tool' then c.name when 'source' then null else '' end as name from registry_change c
where c.host_id = $1 and c.revision > $2
