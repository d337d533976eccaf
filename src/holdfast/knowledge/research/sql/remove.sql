-- Removes a research with its answers and events.
delete from research where tenant_id = $1 and id = $2
