-- The text of a script, and the skill of whose folder it is a file.
select t.script_content as code, t.implementation_class as reference
from tool_t t
where t.host_id = $1 and t.tool_id = $2
