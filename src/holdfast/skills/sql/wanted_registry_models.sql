-- Which model is wanted for each language, by the process that opened last (memory/indexing.py says it): only such a model replaces another.
select language, model from memory_model
