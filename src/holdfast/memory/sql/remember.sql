-- Stores memories of one owner; each as it is now, in the order given.
select is_new, (stored).* from holdfast.remember($1, $2, $3, $4, $5, $6, $7)
