-- Returns the wanted model of each language.
select language, model from memory_model
