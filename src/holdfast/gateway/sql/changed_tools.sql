-- The names of the tools that changed in the registry after a revision. Null stands for a source with other settings: it affects all of its tools.
-- An empty name stands for any other change, such as of skills and agents: new views read these again.
-- There is no condition on the kind: with one, the planner would scan the changes of all revisions by another index.
select distinct case
    when c.kind = 'tool' then c.name
    when c.kind = 'source' and (c.before -> 'settings', c.before -> 'active') is distinct from (c.after -> 'settings', c.after -> 'active') then null
    else '' end as name
from registry_change c
where c.host_id = $1 and c.revision > $2
