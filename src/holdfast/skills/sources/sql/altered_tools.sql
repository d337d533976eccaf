-- The tools of a source whose stored definition is not the pinned one, and that no proposal holds: plain SQL has changed them.
select e.name from holdfast.tool_entries e where e.host_id = $1 and e.source_id = $2 and e.held = 'altered'
