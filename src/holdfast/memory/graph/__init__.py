"""The knowledge graph: entities that memories and documents mention, and how they are related.

`extraction` finds entities and relations in a text by rules, without a language model; it needs no database. `Graph`
searches the stored graph, finds paths between entities, and merges duplicates.
"""
