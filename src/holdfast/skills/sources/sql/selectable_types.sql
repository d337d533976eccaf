-- The types of a source that callers can choose fields of; without the types themselves if their hash is the one that the caller knows.
select k.hash, case when k.hash <> $3 then k.types end as types
from selectable_types k join tool_source o on o.host_id = $1 and o.source_id = k.source_id
where k.host_id = $1 and o.name = $2
