-- Links what the model found, in addition to what rules found.
select holdfast.link_entities($1, $2, $3, $4, $5::json)
