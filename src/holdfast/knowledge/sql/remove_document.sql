-- Removes a document with its chunks, vectors, words, entities, jobs and uploads. Returns how many chunks it had; null if there is no such document.
select holdfast.remove_document($1, $2)
