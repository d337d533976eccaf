-- Has a dead letter processed once more; its group, or nothing where there is none.
select holdfast.redrive($1, $2)
