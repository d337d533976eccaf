-- What changed in the tools that were changed after a revision, up to another one: the columns and the parameters.
select c.name, array(
    select a.key from jsonb_each(c.after) a
    where c.before -> a.key is distinct from a.value and a.key <> all('{aggregate_version,update_ts,update_user}') order by a.key
  ) as columns, array(
    select distinct p.name from (
      select e.value ->> 'name' as name, e.value - 'order_index' as said, 1 as side from jsonb_array_elements(c.before -> 'parameters') e
      union all
      select e.value ->> 'name', e.value - 'order_index', 2 from jsonb_array_elements(c.after -> 'parameters') e
    ) p group by p.name, p.said having count(*) = 1 order by 1
  ) as parameters
from registry_change c
where c.host_id = $1 and c.revision > $2 and c.revision <= $3 and c.kind = 'tool' and c.operation = 'changed'
