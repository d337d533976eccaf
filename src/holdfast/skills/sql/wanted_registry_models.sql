-- The wanted model of each language, set by the process that started last (memory/memory_indexer.py). Only a wanted model's vectors replace those of
-- another.
select language, model from memory_model
