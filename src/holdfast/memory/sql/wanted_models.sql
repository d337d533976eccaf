-- Which model is wanted for each language.
select language, model from memory_model
