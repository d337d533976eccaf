-- The skills and tools that match a query best, in one round trip.
select f.kind, f.name, f.description, f.skill, f.id, f.parts
from holdfast.search_registry($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) f
