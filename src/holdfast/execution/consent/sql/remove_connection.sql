-- Removes the connection of a user with a source, and returns its tokens, to revoke them.
delete from source_connection c using tool_source o
where c.host_id = $1 and o.host_id = $1 and o.source_id = c.source_id and o.name = $2 and c.user_name = $3
returning c.source_id, c.sealed, c.key_id
