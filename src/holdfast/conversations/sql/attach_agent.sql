-- Publishes every further change of a conversation to its agent's topic.
select holdfast.attach_agent($1, $2, $3)
