-- Redrives a dead letter. Returns its group, or null if there is no such dead letter.
select holdfast.redrive($1, $2)
