-- What a step found or decided, if it did already.
select result from research_step where tenant_id = $1 and research_id = $2 and name = $3
